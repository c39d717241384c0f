// Which rules are between two groups: those of the policies of the receiver, for what comes in,
// and of the sender, for what goes out.
import { list, model, text, type Content } from "./model";

export interface Between {
  key: string; // of the rule
  rule: Content;
  at: "source" | "destination";
}

export interface Matrix {
  groups: string[]; // those that are shown
  all: number; // that match
  // by "from to"
  cells: Map<string, Between[]>;
}

export function cellName(from: string, to: string): string {
  return `${from} ${to}`; // names have no spaces
}

// Of the groups whose name contains part, most are looked at: what is compared grows with their square.
export function matrix(tenant: string, part: string, most: number): Matrix {
  const name = (g: Content) => text(g, "groupName");
  const matching = [...model.list("endpointGroup").values()].filter((g) => text(g, "tenantName") === tenant && name(g).toLowerCase().includes(part));
  const groups = matching.sort((a, b) => (name(a) < name(b) ? -1 : 1)).slice(0, most);
  const byPolicy = new Map<string, [string, Content][]>();
  for (const [key, rule] of model.list("rule")) {
    if (text(rule, "tenantName") !== tenant) continue;
    const policy = text(rule, "policyName");
    byPolicy.set(policy, [...(byPolicy.get(policy) ?? []), [key, rule]]);
  }
  const names = groups.map(name);
  const networks = new Map(groups.map((g) => [text(g, "groupName"), text(g, "networkName")]));
  const cells = new Map<string, Between[]>();
  for (const g of groups) {
    const own = text(g, "groupName");
    for (const [key, rule] of list(g, "policies").flatMap((p) => byPolicy.get(p) ?? [])) {
      const comesIn = text(rule, "direction") === "in";
      for (const other of names.filter((n) => matches(rule, comesIn, n, networks.get(n) ?? ""))) {
        const cell = comesIn ? cellName(other, own) : cellName(own, other);
        cells.set(cell, [...(cells.get(cell) ?? []), { key, rule, at: comesIn ? "destination" : "source" }]);
      }
    }
  }
  for (const cell of cells.values()) cell.sort((a, b) => priority(b.rule) - priority(a.rule));
  return { groups: names, all: matching.length, cells };
}

// Whether a rule can be about another group. Addresses may be of any.
function matches(rule: Content, comesIn: boolean, group: string, network: string): boolean {
  const [byGroup, byNetwork] = comesIn ? ["fromEndpointGroup", "fromNetwork"] : ["toEndpointGroup", "toNetwork"];
  const named = text(rule, byGroup);
  const within = text(rule, byNetwork);
  return (!named || named === group) && (!within || within === network);
}

function priority(rule: Content): number {
  return Number(rule["priority"] ?? 1);
}

// A rule in a few letters: "tcp/80".
export function brief(rule: Content): string {
  const port = Number(rule["port"] ?? 0);
  const address = text(rule, "fromIpAddress") || text(rule, "toIpAddress");
  return [`${text(rule, "protocol") || "any"}${port ? `/${port}` : ""}`, address].filter(Boolean).join(" ");
}

// Whether a rule decides nothing: by its own mode, else by its policy's.
export function audited(rule: Content): boolean {
  const policy = model.find("policy", `${text(rule, "tenantName")}:${text(rule, "policyName")}`);
  return (text(rule, "mode") || text(policy, "mode")) === "audit";
}

export function verdicts(cell: Between[] | undefined): "none" | "audit" | "allow" | "deny" | "both" {
  if (!cell?.length) return "none";
  const deciding = cell.filter((b) => !audited(b.rule));
  if (!deciding.length) return "audit";
  const allows = deciding.some((b) => text(b.rule, "action") === "allow");
  const denies = deciding.some((b) => text(b.rule, "action") !== "allow");
  return allows && denies ? "both" : allows ? "allow" : "deny";
}
