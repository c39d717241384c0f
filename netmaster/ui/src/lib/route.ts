// Where in the page one is: the part of the URL behind #, so that it can be linked to.
import { Cell } from "./cell";

export interface Route {
  path: string[]; // ["objects", "rule", "shop:db:1"]
  query: URLSearchParams;
}

function parse(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = new Cell<Route>(parse());

window.addEventListener("hashchange", () => route.set(parse()));

export function link(path: string[], query: Record<string, string> = {}): string {
  const set = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ""));
  const text = set.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(hash: string): void {
  location.hash = hash;
}

// Goes to a hash without a step in the browser's history.
export function replace(hash: string): void {
  history.replaceState(null, "", hash);
  route.set(parse());
}

// Changes what is asked for, without a step in the browser's history.
export function replaceQuery(change: Record<string, string>): void {
  const { path, query } = route.value;
  const all = { ...Object.fromEntries(query), ...change };
  replace(link(path, all));
}
