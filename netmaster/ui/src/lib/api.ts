// Requests to the API of the netmaster that the page came from.
import { Cell } from "./cell";

const tokenKey = "contiv-token";

// The token lives as long as the tab. It is in a header only, never in a URL.
export const token = new Cell<string>(sessionStorage.getItem(tokenKey) ?? "");

export function setToken(text: string): void {
  if (text) sessionStorage.setItem(tokenKey, text);
  else sessionStorage.removeItem(tokenKey);
  token.set(text);
}

// A Refusal is an answer that is not the one asked for. Status 0: there was none.
export class Refusal extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }

  // The server has no such path: of an older version, or without TLS.
  get absent(): boolean {
    return this.status === 404;
  }
}

export function headers(): Record<string, string> {
  return token.value ? { "X-Auth-Token": token.value } : {};
}

// Called when an answer says that nobody knows who asks.
export const stranger = new Cell(0);

// Sends a request and returns the answer if it is a good one.
export async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const init: RequestInit = { method, headers: headers(), cache: "no-store", credentials: "omit", redirect: "error", signal: signal ?? null };
  if (body !== undefined) {
    init.headers = { ...headers(), "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Refusal(0, "netmaster does not answer");
  }
  if (answer.ok) return answer;
  const text = message(await answer.text(), answer.status);
  if (answer.status === 401 || (answer.status === 400 && /token/i.test(text) && !path.startsWith("/api/v1/auth_proxy/"))) {
    stranger.set(stranger.value + 1);
  }
  throw new Refusal(answer.status, text);
}

// The login API answers {"error": …}, the others one line of text.
function message(text: string, status: number): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed && typeof parsed === "object" && "error" in parsed) return String(parsed.error);
  } catch {
    // a line of text
  }
  return text.trim().slice(0, 1000) || `status ${status}`;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", path, undefined, signal)).json()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await send("POST", path, body, signal)).json()) as T;
}

// The path of an object of the model.
export function objectPath(collection: string, key: string): string {
  return `/api/v1/${collection}/${encodeURIComponent(key)}/`;
}

export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
