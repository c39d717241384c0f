// The filter of connections: in the page's URL, and as netmaster is asked for it.
export const filterNames = ["from", "to", "verdict", "rule", "proto", "port", "host", "tenant"] as const;

// minutes of what was recorded that are shown before what comes
export const spans = ["5", "15", "60"];

export function flowQuery(query: URLSearchParams, now: number): URLSearchParams {
  const out = new URLSearchParams({ follow: "true" });
  for (const name of [...filterNames, "either"]) {
    const v = query.get(name);
    if (v) out.set(name, v);
  }
  const minutes = Number(query.get("span") || spans[0]);
  out.set("since", new Date(now - minutes * 60_000).toISOString());
  return out;
}
