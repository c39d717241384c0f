// Tenants, networks, groups and hosts, with the connections between them as they come.
import { useMemo, useRef } from "preact/hooks";
import { useCell } from "../lib/cell";
import { cluster, endpoints, groupOf, networkOf, type Endpoint } from "../lib/cluster";
import { model, text } from "../lib/model";
import { link, replaceQuery, route } from "../lib/route";
import { count, Message, Named, Page, plural } from "../parts/bits";
import { tenantOf, TenantChoice } from "../parts/tenant";
import { Wires, type Wire } from "../parts/wires";
import { useFlows } from "./flows";
import type { Flows } from "../lib/flows";

const most = 200; // groups, and hosts, that are drawn

export interface Box {
  name: string; // "group:web", "network:net", "outside"
  title: string;
  network: string;
  endpoints: number;
}

export function Topology() {
  const { query } = useCell(route);
  const version = useCell(model.version);
  const tenant = tenantOf(query);
  const asked = useMemo(() => new URLSearchParams({ tenant, follow: "true", since: new Date(Date.now() - 300_000).toISOString() }).toString(), [tenant]);
  const stream = useFlows(asked);
  const known = useCell(endpoints).data;
  const own = useMemo(() => (known ?? []).filter((e) => e.tenant === tenant), [known, tenant]);
  const boxes = useMemo(() => boxesOf(tenant, own), [tenant, own, version]);
  return (
    <Page title="Topology" note={`${plural(boxes.networks.length, "network")}, ${plural(boxes.groups, "group")}, ${plural(own.length, "endpoint")}`} actions={<TenantChoice />}>
      {boxes.groups > most && <Message tone="calm">The first {most} groups are drawn.</Message>}
      {stream && <Drawn stream={stream} tenant={tenant} boxes={boxes} endpoints={own} />}
    </Page>
  );
}

interface Boxes {
  networks: { name: string; subnet: string; boxes: Box[] }[];
  groups: number;
}

function boxesOf(tenant: string, own: Endpoint[]): Boxes {
  const sizes = new Map<string, number>();
  for (const e of own) {
    const name = boxOf(groupOf(e), networkOf(e));
    sizes.set(name, (sizes.get(name) ?? 0) + 1);
  }
  const groups = [...model.list("endpointGroup").values()].filter((g) => text(g, "tenantName") === tenant);
  const networks = [...model.list("network").values()].filter((n) => text(n, "tenantName") === tenant).map((n) => ({ name: text(n, "networkName"), subnet: text(n, "subnet") }));
  const shown = groups.slice(0, most);
  return {
    groups: groups.length,
    networks: networks.map(({ name, subnet }) => {
      const boxes = shown.filter((g) => text(g, "networkName") === name).map((g) => ({ name: `group:${text(g, "groupName")}`, title: text(g, "groupName"), network: name, endpoints: sizes.get(`group:${text(g, "groupName")}`) ?? 0 }));
      const alone = sizes.get(`network:${name}`) ?? 0;
      if (alone > 0 || boxes.length === 0) boxes.push({ name: `network:${name}`, title: "no group", network: name, endpoints: alone });
      return { name, subnet, boxes };
    }),
  };
}

function boxOf(group: string, network: string): string {
  return group ? `group:${group}` : network ? `network:${network}` : "outside";
}

function Drawn({ stream, tenant, boxes, endpoints: own }: { stream: Flows; tenant: string; boxes: Boxes; endpoints: Endpoint[] }) {
  const state = useCell(stream.stream.state);
  const version = useCell(stream.version);
  const { query } = useCell(route);
  const area = useRef<HTMLDivElement>(null);
  const wires = useMemo(() => wiresOf(stream), [stream, version]);
  const chosen = query.get("group") ?? "";
  const hosts = useMemo(() => hostsOf(own, chosen), [own, chosen]);
  const outside = wires.some((w) => w.from === "outside" || w.to === "outside");
  return (
    <>
      {state === "absent" && <Message tone="calm">This netmaster keeps no log of connections: none is drawn.</Message>}
      <div class="topology" ref={area}>
        <div class="networks">
          {boxes.networks.map((n) => (
            <section key={n.name} class="network" aria-label={`Network ${n.name}`}>
              <header>
                <Named kind="network" id={`${tenant}:${n.name}`}>
                  {n.name}
                </Named>{" "}
                <span class="mono quiet">{n.subnet}</span>
              </header>
              <div class="groups">
                {n.boxes.map((b) => (
                  <button key={b.name} type="button" class="group" data-box={b.name} aria-pressed={chosen === b.name} onClick={() => replaceQuery({ group: chosen === b.name ? "" : b.name })}>
                    <b>{b.title}</b>
                    <span class="quiet">{plural(b.endpoints, "endpoint")}</span>
                  </button>
                ))}
              </div>
            </section>
          ))}
          {outside && (
            <section class="network" aria-label="Outside">
              <header class="quiet">Outside of the tenant</header>
              <div class="groups">
                <div class="group" data-box="outside">
                  <b>others</b>
                </div>
              </div>
            </section>
          )}
        </div>
        <Wires area={area} wires={wires} chosen={chosen} />
      </div>
      <div class="legend">
        <span class="allowed">allowed</span> <span class="denied">denied</span> <span class="quiet">in the last five minutes, and as they come</span>
      </div>
      {chosen && <Between wires={wires} chosen={chosen} tenant={tenant} />}
      <h2>Hosts</h2>
      <ul class="hosts">
        {hosts.slice(0, most).map(([name, n]) => (
          <li key={name} class={n ? "" : "off"}>
            <a href={link(["hosts", name])}>{name}</a> <span class="quiet">{plural(n, "endpoint")}</span>
          </li>
        ))}
        {hosts.length > most && <li class="quiet">and {count(hosts.length - most)} more</li>}
      </ul>
    </>
  );
}

function hostsOf(own: Endpoint[], chosen: string): [string, number][] {
  const sizes = new Map<string, number>();
  for (const h of cluster.value.data?.hosts ?? []) sizes.set(h.host, 0);
  for (const e of own) {
    const host = e.homingHost ?? "";
    if (host && (!chosen || boxOf(groupOf(e), networkOf(e)) === chosen)) sizes.set(host, (sizes.get(host) ?? 0) + 1);
  }
  return [...sizes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

// The connections between boxes, joined.
function wiresOf(stream: Flows): Wire[] {
  const all = new Map<string, Wire>();
  for (const r of stream.records.values()) {
    const here = (e: typeof r.src) => (e.tenant && e.tenant !== r.tenant ? "outside" : boxOf(e.group ?? "", e.endpoint ? (e.network ?? "") : ""));
    const denied = r.verdict !== "allowed";
    const [from, to] = [here(r.src), here(r.dst)];
    const name = `${from} ${to} ${denied}`;
    const wire = all.get(name) ?? { from, to, denied, count: 0, open: 0 };
    wire.count += r.count || 1;
    if (!denied && !r.end) wire.open++;
    all.set(name, wire);
  }
  return [...all.values()].sort((a, b) => Number(a.denied) - Number(b.denied));
}

function Between({ wires, chosen, tenant }: { wires: Wire[]; chosen: string; tenant: string }) {
  const own = wires.filter((w) => w.from === chosen || w.to === chosen);
  const name = (box: string) => box.replace(/^\w+:/, "");
  return (
    <ul class="between">
      {own.map((w) => (
        <li key={`${w.from}${w.to}${w.denied}`}>
          <a href={link(["flows"], { tenant, from: w.from === "outside" ? "" : name(w.from), to: w.to === "outside" ? "" : name(w.to), verdict: w.denied ? "denied" : "allowed" })}>
            {name(w.from)} → {name(w.to)}
          </a>{" "}
          <span class={w.denied ? "bad-text" : "good-text"}>
            {count(w.count)} {w.denied ? "denied" : "allowed"}
          </span>
        </li>
      ))}
      {own.length === 0 && <li class="quiet">No connections of {name(chosen)}.</li>}
    </ul>
  );
}
