// What netmaster knows of itself and of the hosts.
import { get } from "./api";
import { Polled } from "./polled";

export interface Host {
  host: string;
  state: "up" | "degraded" | "silent" | "gone";
  ctrlIP: string;
  vtep: string;
  version: string;
  revision: number;
  settings: number;
  lag: number;
  flows: number;
  digest: string;
  endpoints: number;
  reasons: string[] | null;
  reported: string;
  gone: string;
  cleanUp: string;
}

export interface Cluster {
  revision: number;
  settings: number;
  hosts: Host[] | null;
}

export interface Applied {
  hosts: number;
  missing: { host: string; reasons: string[] | null }[] | null;
}

export interface Health {
  status: string;
  role: string;
  leader: string;
  reasons: string[] | null;
}

export interface Endpoint {
  endpointID: string;
  containerName?: string;
  endpointGroupKey?: string; // group:tenant
  homingHost?: string;
  ipAddress?: string[];
  macAddress?: string;
  network?: string; // network.tenant
  serviceName?: string;
  tenant: string;
}

export const cluster = new Polled<Cluster>("/api/v1/cluster/", 3000);
export const applied = new Polled<Applied>("/api/v1/cluster/applied/", 3000);
export const health = new Polled<Health>("/healthz", 3000, async (path, signal) => {
  const answer = await fetch(path, { cache: "no-store", signal }); // it says why with a 503
  return (await answer.json()) as Health;
});
export const version = new Polled<{ Version: string; GitCommit: string }>("/version", 60_000);

interface TenantInspection {
  Oper?: { endpoints?: Omit<Endpoint, "tenant">[] };
}

// The endpoints of all tenants that the user may see.
export const endpoints = new Polled<Endpoint[]>("/api/v1/tenants/", 10_000, async (path, signal) => {
  const tenants = await get<{ tenantName: string }[]>(path, signal);
  const found = await Promise.all(
    tenants.map(async ({ tenantName }) => {
      const t = await get<TenantInspection>(`/api/v1/inspect/tenants/${encodeURIComponent(tenantName)}/`, signal);
      return (t.Oper?.endpoints ?? []).map((e) => ({ ...e, tenant: tenantName }));
    }),
  );
  return found.flat();
});

// Somebody else is logged in.
export function forget(): void {
  for (const p of [cluster, applied, health, version, endpoints]) p.reset();
}

// Whether an endpoint is meant: by its container, or by its id, which has the network before it.
export function isCalled(e: Endpoint, id: string): boolean {
  return e.endpointID === id || id === `${e.network}-${e.endpointID}`;
}

export function groupOf(e: Endpoint): string {
  return (e.endpointGroupKey ?? "").split(":")[0] ?? "";
}

export function networkOf(e: Endpoint): string {
  const end = `.${e.tenant}`;
  const name = e.network ?? "";
  return name.endsWith(end) ? name.slice(0, -end.length) : name;
}

export function addresses(e: Endpoint): string {
  return (e.ipAddress ?? []).filter(Boolean).join(", ");
}
