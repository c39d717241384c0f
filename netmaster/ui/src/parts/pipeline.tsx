// The way of a packet through the switches, drawn: see state/traceapi.
import { Badge } from "./bits";

interface Step {
  table: string;
  feature: string;
  object?: string;
  words?: string;
  match?: string;
  actions?: string[] | null;
}

interface HopEnd {
  kind: string;
  words: string;
}

interface Hop {
  host: string;
  bridge: string;
  mode: string;
  from: string;
  steps: Step[] | null;
  ends: HopEnd[] | null;
}

export interface Trace {
  request: Hop[] | null;
  reply: Hop[] | null;
  arrives: boolean;
  verdict: string;
}

export function Pipeline({ trace }: { trace: Trace }) {
  return (
    <div class="pipeline">
      <p>
        <Badge tone={trace.arrives ? "good" : "bad"}>{trace.arrives ? "arrives" : "does not arrive"}</Badge> {trace.verdict}
      </p>
      <Way title="There" hops={trace.request ?? []} />
      {trace.reply?.length ? <Way title="And back" hops={trace.reply} /> : null}
    </div>
  );
}

function Way({ title, hops }: { title: string; hops: Hop[] }) {
  return (
    <>
      <h3>{title}</h3>
      <ol class="hops">
        {hops.map((h, i) => (
          <li key={i}>
            <div class="hop">
              <b>{h.host}</b> <span class="quiet">{h.from}</span>
            </div>
            <ol class="steps">
              {(h.steps ?? []).map((s, n) => (
                <One key={n} step={s} />
              ))}
              {(h.ends ?? []).map((e, n) => (
                <li key={`end${n}`} class={`step end ${e.kind === "dropped" ? "dropped" : ""}`}>
                  {e.words}
                </li>
              ))}
            </ol>
          </li>
        ))}
      </ol>
    </>
  );
}

function One({ step: s }: { step: Step }) {
  return (
    <li class="step">
      <details>
        <summary>
          <span class="where">{s.table}</span> <span>{s.words || s.feature}</span>
          {s.object && <span class="quiet"> {s.object}</span>}
        </summary>
        <pre>
          {s.match}
          {"\n→ "}
          {(s.actions ?? []).join(", ") || "drop"}
        </pre>
      </details>
    </li>
  );
}
