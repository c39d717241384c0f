// The tenant that a view is about.
import { useCell } from "../lib/cell";
import { model } from "../lib/model";
import { replaceQuery, route } from "../lib/route";

// The one that the URL names, or the one with the most groups.
export function tenantOf(query: URLSearchParams): string {
  const named = query.get("tenant");
  if (named) return named;
  const groups = new Map<string, number>();
  for (const g of model.list("endpointGroup").values()) groups.set(String(g["tenantName"]), (groups.get(String(g["tenantName"])) ?? 0) + 1);
  const [first] = [...groups].sort((a, b) => b[1] - a[1]);
  return first?.[0] ?? [...model.list("tenant").keys()][0] ?? "default";
}

export function TenantChoice() {
  useCell(model.version);
  const { query } = useCell(route);
  const tenants = [...model.list("tenant").keys()].sort();
  return (
    <label class="inline">
      Tenant{" "}
      <select value={tenantOf(query)} onChange={(e) => replaceQuery({ tenant: e.currentTarget.value, from: "", to: "", group: "" })}>
        {tenants.map((t) => (
          <option key={t} value={t}>
            {t}
          </option>
        ))}
      </select>
    </label>
  );
}
