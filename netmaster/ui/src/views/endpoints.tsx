// Containers and pods, as objects that the runtimes make.
import { useMemo } from "preact/hooks";
import { useCell } from "../lib/cell";
import { addresses, endpoints, groupOf, isCalled, networkOf, type Endpoint } from "../lib/cluster";
import { link, route } from "../lib/route";
import { Message, Named, Page, plural } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Filter, Tabs } from "./objects";

const columns: Column<Endpoint>[] = [
  { name: "name", title: "Endpoint", cell: (e) => e.containerName || e.endpointID, sort: (e) => e.containerName || e.endpointID },
  { name: "address", title: "Address", kind: "mono", cell: addresses, sort: addresses },
  { name: "group", title: "Group", cell: groupOf, sort: groupOf },
  { name: "network", title: "Network", kind: "wide", cell: networkOf, sort: networkOf },
  { name: "tenant", title: "Tenant", cell: (e) => e.tenant, sort: (e) => e.tenant },
  { name: "host", title: "Host", kind: "wide", cell: (e) => e.homingHost ?? "", sort: (e) => e.homingHost ?? "" },
];

export function Endpoints({ chosen }: { chosen?: string | undefined }) {
  const part = useCell(route).query.get("q") ?? "";
  const answer = useCell(endpoints);
  const rows = useMemo(() => {
    const lower = part.toLowerCase();
    const all = answer.data ?? [];
    return lower ? all.filter((e) => columns.some((c) => String(c.sort?.(e)).toLowerCase().includes(lower)) || e.endpointID.includes(lower)) : all;
  }, [answer.data, part]);
  const one = chosen ? answer.data?.find((e) => isCalled(e, chosen)) : undefined;
  return (
    <Page fixed title="Endpoints" note={answer.data ? plural(rows.length, "endpoint") : ""} actions={<Filter part={part} />}>
      <Tabs here="endpoints" />
      <div class={chosen ? "split open" : "split"}>
        <Table
          label="Endpoints" columns={columns} rows={rows} keyOf={(e) => `${e.tenant}/${e.endpointID}`} href={(e) => link(["objects", "endpoints", e.endpointID], { q: part })}
          sorted="name" empty={answer.data ? "No endpoint matches." : "Loading …"} {...(one ? { selected: `${one.tenant}/${one.endpointID}` } : {})}
        />
        {chosen && (
          <aside class="detail" aria-label={`Endpoint ${chosen}`}>
            <header>
              <h2>
                <span class="quiet">Endpoint</span> {one?.containerName || chosen}
              </h2>
              <a class="button" href={link(["objects", "endpoints"], { q: part })} aria-label="Close">
                ✕
              </a>
            </header>
            {one ? <One endpoint={one} /> : <div>{answer.data && <Message tone="calm">There is no such endpoint, or it is gone.</Message>}</div>}
          </aside>
        )}
      </div>
    </Page>
  );
}

function One({ endpoint: e }: { endpoint: Endpoint }) {
  return (
    <div>
      <dl>
        <dt>ID</dt>
        <dd class="mono">{e.endpointID}</dd>
        <dt>Addresses</dt>
        <dd class="mono">{addresses(e)}</dd>
        <dt>MAC address</dt>
        <dd class="mono">{e.macAddress}</dd>
        <dt>Tenant</dt>
        <dd>
          <Named kind="tenant" id={e.tenant} />
        </dd>
        <dt>Network</dt>
        <dd>
          <Named kind="network" id={`${e.tenant}:${networkOf(e)}`}>
            {networkOf(e)}
          </Named>
        </dd>
        {groupOf(e) && (
          <>
            <dt>Group</dt>
            <dd>
              <Named kind="endpointGroup" id={`${e.tenant}:${groupOf(e)}`}>
                {groupOf(e)}
              </Named>
            </dd>
          </>
        )}
        <dt>Host</dt>
        <dd>{e.homingHost}</dd>
      </dl>
      <p>
        <a href={link(["flows"], { from: `${e.network}-${e.endpointID}`, either: "true" })}>Its connections</a>
      </p>
    </div>
  );
}
