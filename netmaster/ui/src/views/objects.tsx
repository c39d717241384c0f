// All kinds of objects: lists, and one of them with what it is tied to.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useCell } from "../lib/cell";
import { model, text, type Content } from "../lib/model";
import { label } from "../lib/labels";
import { can } from "../lib/rights";
import { link, replaceQuery, route } from "../lib/route";
import { kinds, type Kind } from "../lib/schema";
import { Named, Page, plural } from "../parts/bits";
import { Table, type Column } from "../parts/table";
import { Endpoints } from "./endpoints";
import { Edit } from "./edit";
import { Detail } from "./object";

export function Objects() {
  const { path, query } = useCell(route);
  const [, type = "network", key] = path;
  if (type === "endpoints") return <Endpoints chosen={key} />;
  const kind = kinds.value.get(type);
  if (!kind) return <div class="wait">There is no kind of object called {type}.</div>;
  return <OfKind kind={kind} chosen={key} part={query.get("q") ?? ""} form={query.get("new") ? "new" : key && query.get("edit") ? "edit" : ""} />;
}

// Kinds that are shown when there are objects of them.
const rare = new Set(["volume", "volumeProfile", "extContractsGroup", "aciGw", "appProfile"]);

export function Tabs({ here }: { here: string }) {
  useCell(model.version);
  const present = [...kinds.value.values()].filter((k) => k.type === here || model.list(k.type).size > 0 || !rare.has(k.type));
  const tabs = present.map((k) => [k.type, k.plural] as const);
  tabs.splice(tabs.findIndex(([type]) => type === "policy"), 0, ["endpoints", "Endpoints"]);
  return (
    <nav class="tabs" aria-label="Kinds of objects">
      {tabs.map(([type, title]) => (
        <a key={type} href={link(["objects", type])} aria-current={type === here ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

interface Row {
  key: string;
  object: Content;
}

function OfKind({ kind, chosen, part, form }: { kind: Kind; chosen?: string | undefined; part: string; form: "" | "new" | "edit" }) {
  const version = useCell(model.version);
  const loaded = useCell(model.loaded);
  const rows = useMemo(() => search(kind, part), [kind, part, version]);
  const columns = useMemo(() => columnsOf(kind, rows), [kind, rows]);
  const mayCreate = useMayCreate(kind);
  const open = chosen || form === "new";
  return (
    <Page fixed title={kind.plural} note={plural(rows.length, kind.title.toLowerCase(), kind.plural.toLowerCase())} actions={
        <>
          <Filter part={part} />
          {mayCreate && (
            <a class="button main" href={link(["objects", kind.type], { q: part, new: "1" })}>
              New {kind.title.toLowerCase()}
            </a>
          )}
        </>
      }>
      <Tabs here={kind.type} />
      <div class={open ? "split open" : "split"}>
        <Table
          label={kind.plural} columns={columns} rows={rows} keyOf={(r) => r.key} href={(r) => link(["objects", kind.type, r.key], { q: part })}
          sorted="key" empty={loaded ? (part ? "Nothing matches." : `There are no ${kind.plural.toLowerCase()} yet.`) : "Loading …"} {...(chosen ? { selected: chosen } : {})}
        />
        {form === "new" ? (
          <Edit key="new" kind={kind} id="" back={link(["objects", kind.type], { q: part })} />
        ) : chosen && form === "edit" && loaded ? (
          <Edit key={`edit ${chosen}`} kind={kind} id={chosen} back={link(["objects", kind.type, chosen], { q: part })} />
        ) : (
          chosen && <Detail key={chosen} kind={kind} id={chosen} back={link(["objects", kind.type], { q: part })} />
        )}
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

// Somebody who may create objects of a kind in any tenant that there is.
function useMayCreate(kind: Kind): boolean {
  const version = useCell(model.version);
  const [may, setMay] = useState(false);
  useEffect(() => {
    let current = true;
    const tenants = kind.tenanted ? [...model.list("tenant").keys()] : [""];
    const key = (tenant: string) => [tenant, ...kind.names.slice(1).map(() => "new")].filter(Boolean).join(":") || "new";
    void Promise.all(tenants.slice(0, 20).map((t) => can("create", `${kind.type}/${key(t)}`))).then((all) => current && setMay(all.some(Boolean)));
    return () => {
      current = false;
    };
  }, [kind, version]);
  return may && kind.type !== "global";
}

// The name first, then the tenant, then the other fields that any object has, in the order of the kind.
function columnsOf(kind: Kind, rows: Row[]): Column<Row>[] {
  const names = kind.names.filter((n) => n !== "tenantName" || kind.type === "tenant");
  const columns: Column<Row>[] = [
    { name: "key", title: kind.title, cell: (r) => names.map((n) => text(r.object, n)).join(" / ") || r.key, sort: (r) => r.key },
  ];
  if (kind.tenanted) columns.push({ name: "tenantName", title: "Tenant", cell: (r) => text(r.object, "tenantName"), sort: (r) => text(r.object, "tenantName") });
  const rest = kind.fields.filter((f) => !kind.names.includes(f.name) && f.name !== "tenantName" && f.type !== "objects" && f.name !== "password" && rows.some((r) => text(r.object, f.name)));
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
