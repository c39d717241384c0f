// Who did what, and what was refused.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Audit, type Entry } from "../lib/audit";
import { useCell } from "../lib/cell";
import { replaceQuery, route } from "../lib/route";
import { Badge, Message, Named, Page, plural } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Filter } from "./objects";

const columns: Column<Entry>[] = [
  { name: "time", title: "Time", kind: "mono", cell: (e) => new Date(e.time).toLocaleString("sv-SE"), sort: (e) => e.time },
  { name: "who", title: "Who", cell: (e) => e.who, sort: (e) => e.who },
  { name: "verb", title: "What", cell: (e) => e.verb, sort: (e) => e.verb },
  { name: "object", title: "Object", cell: (e) => (e.kind && e.key ? <Named kind={e.kind} id={e.key}>{`${e.kind} ${e.key}`}</Named> : <span class="mono">{e.path}</span>), sort: (e) => e.path },
  { name: "status", title: "Result", cell: (e) => <Badge tone={e.status < 400 ? "good" : "bad"}>{e.status === 401 || e.status === 403 ? "refused" : e.status < 400 ? "done" : "failed"}</Badge>, sort: (e) => e.status },
  { name: "reason", title: "Reason", cell: (e) => (e.dropped ? `${e.dropped} records before this one were lost` : (e.reason ?? "")) },
  { name: "source", title: "From", kind: "wide", cell: (e) => `${e.source} (${e.how})`, sort: (e) => e.source },
];

export function useAudit(hours: number): Audit | undefined {
  const [log, set] = useState<Audit>();
  useEffect(() => {
    const a = new Audit(hours);
    set(a);
    return () => a.stop();
  }, [hours]);
  return log;
}

export function AuditLog() {
  const log = useAudit(24);
  return log ? <Shown log={log} /> : null;
}

function Shown({ log }: { log: Audit }) {
  const version = useCell(log.version);
  const state = useCell(log.stream.state);
  const { query } = useCell(route);
  const part = (query.get("q") ?? "").toLowerCase();
  const refused = query.get("refused") !== null && query.get("refused") !== "";
  const rows = useMemo(() => {
    const all = [...log.entries].reverse().filter((e) => !refused || e.status === 401 || e.status === 403);
    return part ? all.filter((e) => `${e.who} ${e.verb} ${e.path} ${e.key ?? ""} ${e.reason ?? ""} ${e.source}`.toLowerCase().includes(part)) : all;
  }, [log, version, part, refused]);
  return (
    <Page
      fixed title="Audit" note={`${plural(rows.length, "record")} of the last day, as this netmaster has noted them`}
      actions={
        <>
          <label class="inline">
            <input type="checkbox" checked={refused} onChange={(e) => replaceQuery({ refused: e.currentTarget.checked ? "1" : "" })} /> refused only
          </label>
          <Filter part={query.get("q") ?? ""} />
        </>
      }
    >
      <div>{(state === "waiting" || state === "refused") && <Message tone="warn">{log.stream.error}</Message>}</div>
      <Table label="Audit log" columns={columns} rows={rows} keyOf={(e) => String(e.id)} empty={state === "live" ? "Nothing has been noted." : "Connecting …"} />
    </Page>
  );
}
