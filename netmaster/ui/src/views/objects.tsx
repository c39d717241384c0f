// All kinds of objects: lists, and one of them with what it is tied to.
import { useMemo } from "preact/hooks";
import { useCell } from "../lib/cell";
import { model, text, type Content } from "../lib/model";
import { link, replaceQuery, route } from "../lib/route";
import { kinds, type Kind } from "../lib/schema";
import { Named, Page, plural } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Endpoints } from "./endpoints";
import { Detail } from "./object";

export function Objects() {
  const { path, query } = useCell(route);
  const [, type = "network", key] = path;
  if (type === "endpoints") return <Endpoints chosen={key} />;
  const kind = kinds.value.get(type);
  if (!kind) return <div class="wait">There is no kind of object called {type}.</div>;
  return <OfKind kind={kind} chosen={key} part={query.get("q") ?? ""} />;
}

export function Tabs({ here }: { here: string }) {
  useCell(model.version);
  const present = [...kinds.value.values()].filter((k) => k.type === here || model.list(k.type).size > 0 || k.tenanted || k.type === "tenant");
  return (
    <nav class="tabs" aria-label="Kinds of objects">
      {present.map((k) => (
        <a key={k.type} href={link(["objects", k.type])} aria-current={k.type === here ? "page" : undefined}>
          {k.plural}
        </a>
      ))}
      <a href={link(["objects", "endpoints"])} aria-current={here === "endpoints" ? "page" : undefined}>
        Endpoints
      </a>
    </nav>
  );
}

interface Row {
  key: string;
  object: Content;
}

function OfKind({ kind, chosen, part }: { kind: Kind; chosen?: string | undefined; part: string }) {
  const version = useCell(model.version);
  const loaded = useCell(model.loaded);
  const rows = useMemo(() => search(kind, part), [kind, part, version]);
  const columns = useMemo(() => columnsOf(kind), [kind]);
  return (
    <Page fixed title={kind.plural} note={plural(rows.length, kind.title.toLowerCase(), kind.plural.toLowerCase())} actions={<Filter part={part} />}>
      <Tabs here={kind.type} />
      <div class={chosen ? "split open" : "split"}>
        <Table
          label={kind.plural} columns={columns} rows={rows} keyOf={(r) => r.key} href={(r) => link(["objects", kind.type, r.key], { q: part })}
          sorted="key" empty={loaded ? (part ? "Nothing matches." : `There are no ${kind.plural.toLowerCase()} yet.`) : "Loading …"} {...(chosen ? { selected: chosen } : {})}
        />
        {chosen && <Detail key={chosen} kind={kind} id={chosen} back={link(["objects", kind.type], { q: part })} />}
      </div>
    </Page>
  );
}

export function Filter({ part }: { part: string }) {
  return (
    <input
      type="search" placeholder="Filter" aria-label="Filter the list" value={part} maxLength={128} spellcheck={false}
      onInput={(e) => replaceQuery({ q: e.currentTarget.value })}
    />
  );
}

function search(kind: Kind, part: string): Row[] {
  const lower = part.toLowerCase();
  const rows: Row[] = [];
  for (const [key, object] of model.list(kind.type)) {
    if (!lower || key.toLowerCase().includes(lower) || kind.fields.some((f) => text(object, f.name).toLowerCase().includes(lower))) rows.push({ key, object });
  }
  return rows;
}

// The name first, then the tenant, then the other fields in the order of the kind.
function columnsOf(kind: Kind): Column<Row>[] {
  const names = kind.names.filter((n) => n !== "tenantName" || kind.type === "tenant");
  const columns: Column<Row>[] = [
    { name: "key", title: kind.title, cell: (r) => names.map((n) => text(r.object, n)).join(" / ") || r.key, sort: (r) => r.key },
  ];
  if (kind.tenanted) columns.push({ name: "tenantName", title: "Tenant", cell: (r) => text(r.object, "tenantName"), sort: (r) => text(r.object, "tenantName") });
  const rest = kind.fields.filter((f) => !kind.names.includes(f.name) && f.name !== "tenantName" && f.type !== "objects" && f.name !== "password");
  for (const f of rest) {
    columns.push({
      name: f.name, title: label(f.name), kind: f.type === "integer" ? "number" : "wide", sort: (r) => (f.type === "integer" ? Number(r.object[f.name] ?? 0) : text(r.object, f.name)),
      cell: (r) => {
        const value = text(r.object, f.name);
        return f.refers && value && f.type === "string" ? <Named kind={f.refers} id={kind.tenanted && f.refers !== "tenant" ? `${text(r.object, "tenantName")}:${value}` : value}>{value}</Named> : value;
      },
    });
  }
  return columns;
}

const labels: Record<string, string> = {
  tenantName: "Tenant", networkName: "Network", groupName: "Group", policyName: "Policy", serviceName: "Service", ruleId: "Rule", profileName: "Profile",
  nwType: "Type", pktTag: "Tag", cfgdTag: "Tag name", extContractsGrps: "Contracts", ipPool: "Address pool", netProfile: "Profile",
  fromEndpointGroup: "From group", toEndpointGroup: "To group", fromNetwork: "From network", toNetwork: "To network", fromIpAddress: "From address",
  toIpAddress: "To address", ipAddress: "Address", ipv6Subnet: "IPv6 subnet", ipv6Gateway: "IPv6 gateway", encap: "Encapsulation",
};

export function label(name: string): string {
  if (labels[name]) return labels[name];
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[-_]/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
