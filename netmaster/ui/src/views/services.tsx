// Services, with who provides them.
import { useMemo } from "preact/hooks";
import { get } from "../lib/api";
import { useCell } from "../lib/cell";
import { list, model, text, type Content } from "../lib/model";
import { Polled } from "../lib/polled";
import { link, route } from "../lib/route";
import { Badge, Named, Page, plural } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Filter } from "./objects";

interface Provider {
  containerName?: string;
  containerID?: string;
  endpointID?: string;
  ipAddress?: string[];
  homingHost?: string;
}

interface Row {
  key: string;
  object: Content;
  vip: string;
  providers: Provider[] | undefined;
}

// What is known of services besides their settings; of two hundred at most.
const opers = new Polled<Map<string, { vip: string; providers: Provider[] }>>("/api/v1/inspect/serviceLBs/", 5000, async (path, signal) => {
  const keys = [...model.list("serviceLB").keys()].slice(0, 200);
  const all = await Promise.all(
    keys.map(async (key) => {
      const a = await get<{ Oper?: { serviceVip?: string; providers?: Provider[] } }>(`${path}${encodeURIComponent(key)}/`, signal);
      return [key, { vip: a.Oper?.serviceVip ?? "", providers: a.Oper?.providers ?? [] }] as const;
    }),
  );
  return new Map(all);
});

const columns: Column<Row>[] = [
  { name: "name", title: "Service", cell: (r) => text(r.object, "serviceName"), sort: (r) => text(r.object, "serviceName") },
  { name: "tenant", title: "Tenant", cell: (r) => text(r.object, "tenantName"), sort: (r) => text(r.object, "tenantName") },
  { name: "address", title: "Address", kind: "mono", cell: (r) => r.vip || text(r.object, "ipAddress"), sort: (r) => r.vip },
  { name: "ports", title: "Ports", kind: "mono", cell: (r) => list(r.object, "ports").join(" ") },
  { name: "selectors", title: "Selectors", kind: "wide", cell: (r) => list(r.object, "selectors").join(" ") },
  {
    name: "providers", title: "Providers", sort: (r) => r.providers?.length ?? -1,
    cell: (r) => (r.providers === undefined ? "" : r.providers.length ? plural(r.providers.length, "provider") : <Badge tone="warn">none</Badge>),
  },
];

export function Services() {
  const version = useCell(model.version);
  const { path, query } = useCell(route);
  const known = useCell(opers).data;
  const part = (query.get("q") ?? "").toLowerCase();
  const rows = useMemo(() => {
    const all = [...model.list("serviceLB")].map(([key, object]) => ({ key, object, vip: known?.get(key)?.vip ?? "", providers: known?.get(key)?.providers }));
    return all.filter((r) => !part || `${r.key} ${r.vip} ${list(r.object, "ports").join()}`.toLowerCase().includes(part));
  }, [version, known, part]);
  const one = rows.find((r) => r.key === path[1]);
  return (
    <Page fixed title="Services" note={plural(rows.length, "service")} actions={<Filter part={query.get("q") ?? ""} />}>
      <div />
      <div class={one ? "split open" : "split"}>
        <Table label="Services" columns={columns} rows={rows} keyOf={(r) => r.key} href={(r) => link(["services", r.key])} sorted="name" empty="There are no services." {...(one ? { selected: one.key } : {})} />
        {one && (
          <aside class="detail" aria-label={`Service ${one.key}`}>
            <header>
              <h2>
                <span class="quiet">Service</span> {one.key}
              </h2>
              <a class="button" href={link(["services"])} aria-label="Close">
                ✕
              </a>
            </header>
            <div>
              <dl>
                <dt>Object</dt>
                <dd>
                  <Named kind="serviceLB" id={one.key} />
                </dd>
                <dt>Address</dt>
                <dd class="mono">{one.vip}</dd>
                <dt>Ports</dt>
                <dd class="mono">{list(one.object, "ports").join(", ")}</dd>
                <dt>Selectors</dt>
                <dd class="mono">{list(one.object, "selectors").join(", ")}</dd>
              </dl>
            </div>
            <div>
              <h3>Providers</h3>
              {one.providers?.length === 0 && <p class="quiet">No container has all labels of the selectors.</p>}
              <ul>
                {(one.providers ?? []).slice(0, 200).map((p) => (
                  <li key={p.endpointID ?? p.containerID}>
                    <a href={link(["objects", "endpoints", p.endpointID ?? ""])}>{p.containerName || p.endpointID || p.containerID}</a> <span class="mono">{(p.ipAddress ?? []).filter(Boolean).join(", ")}</span>{" "}
                    <span class="quiet">{p.homingHost}</span>
                  </li>
                ))}
              </ul>
            </div>
            <div>
              <a href={link(["flows"], { to: one.vip })}>Connections</a>
            </div>
          </aside>
        )}
      </div>
    </Page>
  );
}
