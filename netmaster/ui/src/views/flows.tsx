// Connections as they come, and those of the past hour.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useCell } from "../lib/cell";
import { csv, download } from "../lib/csv";
import { flowQuery, filterNames, spans } from "../lib/flowquery";
import { decisive, endName, Flows as Stream, ruleName, service, tone, type FlowRecord } from "../lib/flows";
import { link, replaceQuery, route } from "../lib/route";
import { Badge, clock, count, Message, Page, plural } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Connection } from "./connection";

export const columns: Column<FlowRecord>[] = [
  { name: "time", title: "Time", kind: "mono", cell: (r) => clock(r.start), sort: (r) => r.start },
  { name: "verdict", title: "Verdict", cell: (r) => <Verdict record={r} />, sort: (r) => r.verdict },
  { name: "from", title: "From", cell: (r) => <EndOf end={r.src} />, sort: (r) => endName(r.src) },
  { name: "to", title: "To", cell: (r) => <EndOf end={r.dst} />, sort: (r) => endName(r.dst) },
  { name: "what", title: "Service", kind: "mono", cell: service, sort: service },
  { name: "rule", title: "Decided by", cell: (r) => ruleName(decisive(r)), sort: (r) => ruleName(decisive(r)) },
  { name: "tenant", title: "Tenant", kind: "wide", cell: (r) => r.tenant, sort: (r) => r.tenant },
  { name: "host", title: "Hosts", kind: "wide", cell: (r) => (r.hosts ?? []).join(" → "), sort: (r) => (r.hosts ?? []).join() },
  { name: "lasted", title: "Lasted", kind: "number", cell: lasted, sort: (r) => (r.end ? Date.parse(r.end) - Date.parse(r.start) : Infinity) },
  { name: "bytes", title: "Bytes", kind: "number", cell: (r) => (r.bytes ? count(r.bytes) : ""), sort: (r) => r.bytes ?? 0 },
];

export function Verdict({ record: r }: { record: FlowRecord }) {
  return (
    <>
      <Badge tone={tone(r.verdict)}>{r.verdict}</Badge>
      {r.count > 1 && <span class="quiet"> × {count(r.count)}</span>}
      {r.wouldBe && <Badge tone="warn">would be {r.wouldBe.verdict}</Badge>}
    </>
  );
}

function EndOf({ end }: { end: FlowRecord["src"] }) {
  return (
    <>
      {endName(end)}
      {end.group && <span class="quiet"> {end.group}</span>}
    </>
  );
}

export function lasted(r: FlowRecord): string {
  if (r.verdict !== "allowed") return "";
  if (!r.end) return "open";
  const ms = Date.parse(r.end) - Date.parse(r.start);
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

// The stream of a query, from the first draw to the last.
export function useFlows(query: string): Stream | undefined {
  const [stream, set] = useState<Stream>();
  useEffect(() => {
    const s = new Stream(new URLSearchParams(query));
    set(s);
    return () => s.stop();
  }, [query]);
  return stream;
}

export function Flows() {
  const { path, query } = useCell(route);
  const asked = [...filterNames, "either", "span"].map((n) => `${n}=${query.get(n) ?? ""}`).join("&");
  const stream = useFlows(useMemo(() => flowQuery(new URLSearchParams(asked), Date.now()).toString(), [asked]));
  if (!stream) return null;
  return <Shown stream={stream} chosen={path[1]} />;
}

function Shown({ stream, chosen }: { stream: Stream; chosen?: string | undefined }) {
  const state = useCell(stream.stream.state);
  const version = useCell(stream.version);
  const { query } = useCell(route);
  const [paused, pause] = useState<FlowRecord[]>();
  const now = useMemo(() => [...stream.records.values()].reverse(), [stream, version]);
  const rows = paused ?? now;
  const denied = rows.filter((r) => r.verdict !== "allowed").length;
  const all = Object.fromEntries(query);
  if (state === "absent") {
    return (
      <Page title="Flows">
        <Message tone="calm">This netmaster keeps no log of connections.</Message>
      </Page>
    );
  }
  const one = chosen ? (rows.find((r) => r.id === chosen) ?? stream.records.get(chosen)) : undefined;
  return (
    <Page
      fixed title="Flows" note={`${plural(rows.length, "connection")}, ${count(denied)} denied${stream.live ? "" : " · loading"}`}
      actions={
        <>
          <button type="button" aria-pressed={paused !== undefined} onClick={() => pause(paused ? undefined : now)}>
            {paused ? "Go on" : "Pause"}
          </button>
          <button type="button" onClick={() => download("connections.csv", table(rows))}>
            Save as CSV
          </button>
        </>
      }
    >
      <div class="stack">
        <Filters />
        {state === "refused" && <Message tone="bad">{stream.stream.error}</Message>}
        {stream.missing.size > 0 && <Message tone="warn">Not heard: {[...stream.missing].map(([h, e]) => `${h} (${e})`).join(", ")}</Message>}
        {stream.gaps.length > 0 && <Gaps stream={stream} />}
      </div>
      <div class={chosen ? "split open" : "split"}>
        <Table
          label="Connections" columns={columns} rows={rows} keyOf={(r) => r.id} href={(r) => link(["flows", r.id], all)} tone={(r) => (r.verdict === "allowed" ? "" : "denied")}
          empty={state === "live" ? "No connection matches, so far." : "Connecting …"} {...(chosen ? { selected: chosen } : {})}
        />
        {chosen && <Connection record={one} back={link(["flows"], all)} />}
      </div>
    </Page>
  );
}

function Gaps({ stream }: { stream: Stream }) {
  const last = stream.gaps.at(-1);
  const sum = stream.gaps.reduce((n, g) => n + g.count, 0);
  return (
    <Message tone="warn">
      {count(sum)} packets or records were left out; last on {last?.host}: {last?.why}
    </Message>
  );
}

function Filters() {
  const { query } = useCell(route);
  const value = (n: string) => query.get(n) ?? "";
  const entry = (name: string, title: string, size: number) => (
    <input key={name} aria-label={title} placeholder={title} size={size} value={value(name)} maxLength={128} spellcheck={false} onChange={(e) => replaceQuery({ [name]: e.currentTarget.value.trim() })} />
  );
  const choice = (name: string, title: string, options: [string, string][]) => (
    <select aria-label={title} value={value(name)} onChange={(e) => replaceQuery({ [name]: e.currentTarget.value })}>
      {options.map(([v, t]) => (
        <option key={v} value={v}>
          {t}
        </option>
      ))}
    </select>
  );
  return (
    <form class="bar filters" role="search" aria-label="Filter connections" onSubmit={(e) => e.preventDefault()}>
      {choice("verdict", "Verdict", [["", "All verdicts"], ["allowed", "Allowed"], ["denied", "Denied"]])}
      {entry("from", "From", 12)}
      {entry("to", "To", 12)}
      <label>
        <input type="checkbox" checked={value("either") !== ""} onChange={(e) => replaceQuery({ either: e.currentTarget.checked ? "true" : "" })} /> both directions
      </label>
      {choice("proto", "Protocol", [["", "Any protocol"], ["tcp", "TCP"], ["udp", "UDP"], ["icmp", "ICMP"], ["icmpv6", "ICMPv6"], ["sctp", "SCTP"]])}
      {entry("port", "Port", 6)}
      {entry("rule", "Policy or rule", 12)}
      {entry("host", "Host", 8)}
      {entry("tenant", "Tenant", 8)}
      <select aria-label="Time" value={value("span") || spans[0]} onChange={(e) => replaceQuery({ span: e.currentTarget.value })}>
        {spans.map((s) => (
          <option key={s} value={s}>
            last {s} min
          </option>
        ))}
      </select>
    </form>
  );
}

export function table(rows: FlowRecord[]): string {
  const head = ["start", "end", "verdict", "tenant", "proto", "from", "from address", "from group", "to", "to address", "to port", "to group", "decided by", "hosts", "count", "packets", "bytes"];
  return csv([
    head,
    ...rows.map((r) => [
      r.start, r.end ?? "", r.verdict, r.tenant, r.proto, endName(r.src), r.src.address, r.src.group ?? "", endName(r.dst), r.dst.address, String(r.dst.port ?? ""), r.dst.group ?? "",
      (r.decisions ?? []).map(ruleName).join("; "), (r.hosts ?? []).join(" "), String(r.count), String(r.packets ?? ""), String(r.bytes ?? ""),
    ]),
  ]);
}
