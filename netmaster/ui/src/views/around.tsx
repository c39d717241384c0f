// The connections up to a time.
import { useMemo } from "preact/hooks";
import { useCell } from "../lib/cell";
import { decisive, endName, ruleName, service, tone, type Flows } from "../lib/flows";
import { link } from "../lib/route";
import { Badge, clock, Panel } from "../parts/bits";
import { useFlows } from "./flows";

export function FlowsAround({ at }: { at: number }) {
  const query = useMemo(() => new URLSearchParams({ since: new Date(Date.now() - 3_600_000).toISOString(), follow: "true" }).toString(), []);
  const stream = useFlows(query);
  return stream ? <Shown stream={stream} at={at} /> : null;
}

function Shown({ stream, at }: { stream: Flows; at: number }) {
  const state = useCell(stream.stream.state);
  useCell(stream.version);
  if (state === "absent" || state === "refused") return null;
  const until = at || Number.MAX_SAFE_INTEGER;
  const rows = [...stream.records.values()].filter((r) => Date.parse(r.start) <= until).slice(-100).reverse();
  return (
    <Panel title={at ? `Connections until ${clock(at)}` : "Connections"} actions={<a href={link(["flows"], { span: "60" })}>All</a>}>
      {rows.length === 0 ? (
        <p class="empty">None was recorded.</p>
      ) : (
        <ul class="list">
          {rows.map((r) => (
            <li key={r.id}>
              <Badge tone={tone(r.verdict)}>{r.verdict}</Badge>
              <span>
                {endName(r.src)} → {endName(r.dst)} <span class="mono">{service(r)}</span> <span class="quiet">{ruleName(decisive(r))}</span>
              </span>
              <span class="end">{clock(r.start)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
