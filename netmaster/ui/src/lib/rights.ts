// What the user may do: netmaster says, by the rules that it judges requests by.
import { useEffect, useState } from "preact/hooks";
import { post } from "./api";
import { session } from "./session";

const known = new Map<string, Promise<boolean>>();

session.follow(() => known.clear());

// verb and object are those of netctl can-i.
export function can(verb: string, object: string): Promise<boolean> {
  if (session.value.state === "open") return Promise.resolve(true);
  const question = `${verb} ${object}`;
  let answer = known.get(question);
  if (!answer) {
    answer = post<{ allowed: boolean }>("/api/v1/security/can-i", { verb, object }).then(
      (a) => a.allowed,
      () => {
        known.delete(question);
        return false;
      },
    );
    known.set(question, answer);
  }
  return answer;
}

// False until it is known.
export function useCan(verb: string, object: string | undefined): boolean {
  const [allowed, set] = useState(false);
  useEffect(() => {
    let current = true;
    set(false);
    if (object) void can(verb, object).then((a) => current && set(a));
    return () => {
      current = false;
    };
  }, [verb, object]);
  return allowed;
}
