// Hosts: what they have applied, problems.
import { useMemo } from "preact/hooks";
import { useCell } from "../lib/cell";
import { cluster, type Host } from "../lib/cluster";
import { link, route } from "../lib/route";
import { Ago, Badge, count, Message, Page, plural, type Tone } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Filter } from "./objects";

const tones: Record<string, Tone> = { up: "good", degraded: "bad", silent: "warn", gone: "bad" };

const columns: Column<Host>[] = [
  { name: "host", title: "Host", cell: (h) => h.host, sort: (h) => h.host },
  { name: "state", title: "State", cell: (h) => <Badge tone={tones[h.state] ?? "warn"}>{h.state}</Badge>, sort: (h) => h.state },
  { name: "applied", title: "Applied", cell: (h) => (h.lag ? <span class="warn-text">{plural(h.lag, "change")} behind</span> : h.revision ? "all" : "–"), sort: (h) => h.lag },
  { name: "reasons", title: "Problems", cell: (h) => (h.reasons ?? []).join("; "), sort: (h) => (h.reasons ?? []).length },
  { name: "endpoints", title: "Endpoints", kind: "number", cell: (h) => count(h.endpoints), sort: (h) => h.endpoints },
  { name: "flows", title: "Flows", kind: "number", cell: (h) => count(h.flows), sort: (h) => h.flows },
  { name: "vtep", title: "Tunnel address", kind: "mono", cell: (h) => h.vtep, sort: (h) => h.vtep },
  { name: "version", title: "Version", kind: "wide", cell: (h) => h.version, sort: (h) => h.version },
  { name: "reported", title: "Reported", kind: "wide", cell: (h) => <Ago at={h.reported} />, sort: (h) => h.reported },
];

export function Hosts() {
  const { path, query } = useCell(route);
  const answer = useCell(cluster);
  const part = (query.get("q") ?? "").toLowerCase();
  const hosts = answer.data?.hosts;
  const rows = useMemo(() => (hosts ?? []).filter((h) => !part || `${h.host} ${h.state} ${h.vtep} ${h.version} ${(h.reasons ?? []).join(" ")}`.toLowerCase().includes(part)), [hosts, part]);
  const behind = rows.filter((h) => h.lag > 0 && h.state !== "gone").length;
  const up = rows.filter((h) => h.state === "up").length;
  const chosen = hosts?.find((h) => h.host === path[1]);
  return (
    <Page fixed title="Hosts" note={answer.data ? `${count(up)} of ${count(rows.length)} up${behind ? `, ${count(behind)} behind` : ", all changes applied"}` : ""} actions={<Filter part={query.get("q") ?? ""} />}>
      <div>{answer.error && <Message tone="warn">{answer.error.message}</Message>}</div>
      <div class={path[1] ? "split open" : "split"}>
        <Table label="Hosts" columns={columns} rows={rows} keyOf={(h) => h.host} href={(h) => link(["hosts", h.host], { q: part })} sorted="host" empty={answer.data ? "No host matches." : "Loading …"} {...(path[1] ? { selected: path[1] } : {})} />
        {path[1] && (
          <aside class="detail" aria-label={`Host ${path[1]}`}>
            <header>
              <h2>
                <span class="quiet">Host</span> {path[1]}
              </h2>
              <a class="button" href={link(["hosts"], { q: part })} aria-label="Close">
                ✕
              </a>
            </header>
            {chosen ? <One host={chosen} revision={answer.data?.revision ?? 0} /> : <div>{answer.data && <Message tone="calm">There is no such host.</Message>}</div>}
          </aside>
        )}
      </div>
    </Page>
  );
}

function One({ host: h, revision }: { host: Host; revision: number }) {
  return (
    <div>
      {(h.reasons ?? []).map((r) => (
        <Message key={r} tone="bad">
          {r}
        </Message>
      ))}
      <dl class="after">
        <dt>State</dt>
        <dd>
          <Badge tone={tones[h.state] ?? "warn"}>{h.state}</Badge>
        </dd>
        <dt>Applied</dt>
        <dd>
          revision {h.revision} of {revision}
        </dd>
        <dt>Flows</dt>
        <dd>
          {count(h.flows)} <span class="mono quiet">{h.digest}</span>
        </dd>
        <dt>Endpoints</dt>
        <dd>
          <a href={link(["objects", "endpoints"], { q: h.host })}>{count(h.endpoints)}</a>
        </dd>
        <dt>Control address</dt>
        <dd class="mono">{h.ctrlIP}</dd>
        <dt>Tunnel address</dt>
        <dd class="mono">{h.vtep}</dd>
        <dt>Version</dt>
        <dd>{h.version}</dd>
        <dt>Reported</dt>
        <dd>
          <Ago at={h.reported} />
        </dd>
        {h.gone && (
          <>
            <dt>Down since</dt>
            <dd>{new Date(h.gone).toLocaleString()}</dd>
          </>
        )}
        {h.cleanUp && (
          <>
            <dt>Endpoints go</dt>
            <dd>{new Date(h.cleanUp).toLocaleString()}</dd>
          </>
        )}
      </dl>
      <p class="after">
        <a href={link(["flows"], { host: h.host })}>Connections that it has seen</a>
      </p>
    </div>
  );
}
