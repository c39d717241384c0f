// What somebody should look at, the most urgent first.
import type { Answer } from "./polled";
import type { Applied, Cluster, Health } from "./cluster";
import { link } from "./route";

export interface Alert {
  tone: "bad" | "warn";
  what: string;
  why: string;
  href?: string;
  since?: string;
}

export function alerts(h: Answer<Health>, c: Answer<Cluster>, a: Answer<Applied>): Alert[] {
  const found: Alert[] = [];
  if (h.error) found.push({ tone: "bad", what: "netmaster", why: "does not answer" });
  if (h.data && h.data.status !== "ok") found.push({ tone: "bad", what: "netmaster", why: (h.data.reasons ?? []).join("; ") || h.data.status });
  for (const host of c.data?.hosts ?? []) {
    const at = { what: host.host, href: link(["hosts", host.host]) };
    const reasons = (host.reasons ?? []).join("; ");
    if (host.state === "gone") {
      const until = host.cleanUp ? `; its endpoints are removed at ${new Date(host.cleanUp).toLocaleString()}` : "";
      found.push({ ...at, tone: "bad", why: `is down${until}`, since: host.gone });
    } else if (host.state === "degraded") found.push({ ...at, tone: "bad", why: reasons || "is not well", since: host.reported });
    else if (host.state === "silent") found.push({ ...at, tone: "warn", why: "runs, but does not report to this netmaster", since: host.reported });
    if (host.lag > 0 && host.state !== "gone") found.push({ ...at, tone: "warn", why: `has not applied the last ${host.lag} changes`, since: host.reported });
  }
  if (!c.data) {
    for (const m of a.data?.missing ?? []) found.push({ tone: "warn", what: m.host, why: (m.reasons ?? []).join("; ") || "has not applied everything" });
  }
  return found.sort((x, y) => Number(x.tone === "warn") - Number(y.tone === "warn"));
}
