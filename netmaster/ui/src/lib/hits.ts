// How often rules decided.
import type { Hits, HitsAnswer } from "./flows";
import { Polled } from "./polled";

export const hits = new Polled<HitsAnswer>("/api/v1/flows/hits/", 5000);

export function hitsOf(answer: HitsAnswer | undefined, tenant: string, policy: string, rule: string): Hits | undefined {
  return answer?.hits?.find((h) => h.by === "rule" && h.tenant === tenant && h.policy === policy && h.rule === rule);
}
