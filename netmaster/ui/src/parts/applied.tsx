// How many hosts have what was saved.
import { useEffect, useState } from "preact/hooks";
import { get, words } from "../lib/api";
import { Cell, useCell } from "../lib/cell";
import type { Applied } from "../lib/cluster";
import { Message } from "./bits";

interface Saved {
  revision: string;
  settings: string;
}

// What netmaster wrote for hosts with the last change that was saved here.
const saved = new Cell<Saved>({ revision: "0", settings: "0" });

export function noteSaved(answer: Response): void {
  const number = (name: string) => answer.headers.get(name) ?? "0";
  saved.set({ revision: number("X-Contiv-Revision"), settings: number("X-Contiv-Settings-Revision") });
}

export function AppliedNow() {
  const { revision, settings } = useCell(saved);
  const [state, setState] = useState<Applied>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const asking = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const a = await get<Applied>(`/api/v1/cluster/applied/?revision=${revision}&settings=${settings}&wait=2s`, asking.signal);
        setState(a);
        if (a.missing?.length) timer = window.setTimeout(() => void ask(), 500);
      } catch (e) {
        if (!asking.signal.aborted) setProblem(words(e));
      }
    };
    void ask();
    return () => (asking.abort(), clearTimeout(timer));
  }, [revision, settings]);
  const missing = state?.missing ?? [];
  return (
    <div class="applied">
      {problem ? (
        <Message tone="warn">Saved. {problem}</Message>
      ) : (
        <Message tone={state && !missing.length ? "good" : "calm"}>
          {state ? `Saved. Applied on ${state.hosts - missing.length} of ${state.hosts} hosts.` : "Saved. Waiting for the hosts …"}
          {missing.length > 0 && ` Not yet: ${missing.slice(0, 5).map((m) => m.host).join(", ")}`}
        </Message>
      )}
    </div>
  );
}
