// The kinds of objects, read from the API's own description (OpenAPI 3), which netmaster makes
// of the same table that it checks objects by.
import { get } from "./api";
import { Cell } from "./cell";

export interface Field {
  name: string;
  type: "string" | "integer" | "boolean" | "list" | "objects";
  item?: Field; // of a list
  fields?: Field[]; // of objects in a list
  description: string;
  required: boolean;
  immutable: boolean;
  refers?: string; // type of the objects that it names
  choices?: string[];
  pattern?: RegExp;
  min?: number;
  max?: number;
  maxLength?: number;
  initial?: string | number;
}

export interface Kind {
  type: string; // "endpointGroup"
  collection: string; // "endpointGroups"
  title: string; // "Endpoint group"
  plural: string;
  names: string[]; // the fields that the key is made of
  fields: Field[];
  tenanted: boolean;
}

interface Schema {
  $ref?: string;
  type?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  readOnly?: boolean;
  description?: string;
  enum?: string[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  default?: string | number;
  "x-contiv-immutable"?: boolean;
  "x-contiv-refers-to"?: string;
}

interface Operation {
  tags?: string[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

interface Document {
  paths: Record<string, { put?: Operation; parameters?: { name: string; description?: string }[] }>;
  components: { schemas: Record<string, Schema> };
}

// In the order in which people think of them; others follow.
const order = ["tenant", "network", "endpointGroup", "policy", "rule", "serviceLB", "netprofile", "appProfile", "extContractsGroup"];

const titles: Record<string, [string, string]> = {
  serviceLB: ["Service", "Services"], policy: ["Policy", "Policies"], netprofile: ["Network profile", "Network profiles"], Bgp: ["BGP speaker", "BGP speakers"],
  aciGw: ["ACI gateway", "ACI gateways"], global: ["Global settings", "Global settings"], endpointGroup: ["Group", "Groups"],
  extContractsGroup: ["External contract", "External contracts"],
};

export const kinds = new Cell<Map<string, Kind>>(new Map());

export async function loadKinds(): Promise<void> {
  kinds.set(read(await get<Document>("/api/v1/openapi.json")));
}

export function read(doc: Document): Map<string, Kind> {
  const found: Kind[] = [];
  for (const [path, item] of Object.entries(doc.paths)) {
    const match = /^\/api\/v1\/(\w+)\/\{key\}\/$/.exec(path);
    const type = item.put?.tags?.[0];
    const body = item.put?.requestBody?.content["application/json"]?.schema;
    if (!match?.[1] || !type || !body) continue;
    const schema = resolve(doc, body);
    const names = (item.parameters?.[0]?.description?.split(": ").pop() ?? "").split(":").filter((n) => schema.properties?.[n]);
    const [title, plural] = titles[type] ?? spell(type);
    found.push({ type, collection: match[1], title, plural, names, fields: ordered(fields(doc, schema), names), tenanted: names[0] === "tenantName" && type !== "tenant" });
  }
  const place = (k: Kind) => (order.indexOf(k.type) + order.length + 1) % (order.length + 1);
  found.sort((a, b) => place(a) - place(b) || a.title.localeCompare(b.title));
  return new Map(found.map((k) => [k.type, k]));
}

// What names an object first, then what it needs, then the rest.
function ordered(all: Field[], names: string[]): Field[] {
  const place = (f: Field) => (names.includes(f.name) ? names.indexOf(f.name) : names.length + Number(!f.required));
  return all.sort((a, b) => place(a) - place(b));
}

function spell(type: string): [string, string] {
  const text = type.replace(/([A-Z])/g, " $1").toLowerCase().trim();
  const title = text.charAt(0).toUpperCase() + text.slice(1);
  return [title, `${title}s`];
}

function resolve(doc: Document, s: Schema): Schema {
  return s.$ref ? (doc.components.schemas[s.$ref.split("/").pop() ?? ""] ?? {}) : s;
}

function fields(doc: Document, schema: Schema): Field[] {
  const names = Object.entries(schema.properties ?? {});
  return names.filter(([, s]) => !s.readOnly).map(([name, s]) => field(doc, name, s, schema.required?.includes(name) ?? false));
}

function field(doc: Document, name: string, at: Schema, required: boolean): Field {
  const s = resolve(doc, at);
  const f: Field = { name, type: "string", description: at.description ?? s.description ?? "", required, immutable: at["x-contiv-immutable"] ?? false };
  if (s.type === "integer" || s.type === "boolean") f.type = s.type;
  if (s.type === "array" && s.items) {
    f.item = field(doc, name, s.items, false);
    f.type = f.item.fields ? "objects" : "list";
    if (f.item.fields) f.fields = f.item.fields;
  }
  if (s.type === "object" && s.properties) f.fields = fields(doc, s);
  const refers = at["x-contiv-refers-to"] ?? f.item?.refers;
  if (refers) f.refers = refers;
  if (s.enum) f.choices = s.enum;
  if (s.pattern) f.pattern = new RegExp(s.pattern, "u");
  if (s.minimum !== undefined) f.min = s.minimum;
  if (s.maximum !== undefined) f.max = s.maximum;
  if (s.maxLength !== undefined) f.maxLength = s.maxLength;
  if (s.default !== undefined) f.initial = s.default;
  return f;
}
