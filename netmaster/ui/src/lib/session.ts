// Who uses the page, and what for.
import { get, post, Refusal, send, setToken, stranger, token } from "./api";
import { Cell } from "./cell";
import { replace } from "./route";

export interface Grant {
  role: "admin" | "ops" | "viewer";
  tenant?: string;
}

export interface Identity {
  kind: string;
  name: string;
  how: string;
  grants?: Grant[];
}

export type Session =
  | { state: "asking" }
  | { state: "away"; error: string } // netmaster does not answer
  | { state: "login"; error: string } // empty: nothing is wrong
  | { state: "open" } // without TLS everybody may do everything
  | { state: "known"; who: Identity };

export const session = new Cell<Session>({ state: "asking" });

const login = "/api/v1/auth_proxy/";

let retry = 0;

// Where the tab was when it went to the provider. A token that comes back is believed only if
// this tab has gone to ask for one: a link of somebody else must not log anybody in.
const wentKey = "contiv-went";

// Where to log in by the OpenID Connect provider; empty if there is none.
export async function provider(): Promise<string> {
  const { browser } = await get<{ browser: boolean }>(`${login}oidc/`);
  return browser ? `${login}oidc/login/` : "";
}

export function goToProvider(): void {
  sessionStorage.setItem(wentKey, location.hash || "#/");
}

// What the provider's answer was, if the tab comes from there: empty if all is well.
export function returned(): string {
  const said = new URLSearchParams(location.hash.slice(1));
  if (!said.has("token") && !said.has("login_error")) return "";
  const went = sessionStorage.getItem(wentKey);
  sessionStorage.removeItem(wentKey);
  replace(went ?? "#/");
  if (went === null) return "This login was not begun in this tab. Begin again.";
  setToken(said.get("token") ?? "");
  return said.get("login_error") ?? "";
}

// Finds out whether the token is good, or none is needed.
export async function begin(problem = ""): Promise<void> {
  clearTimeout(retry);
  try {
    session.set({ state: "known", who: await get<Identity>(`${login}whoami/`) });
  } catch (e) {
    const status = e instanceof Refusal ? e.status : 0;
    if (status === 404) session.set({ state: "open" });
    else if (status === 400 || status === 401 || status === 403) {
      const had = token.value !== "";
      setToken("");
      session.set({ state: "login", error: problem || (had ? "Your login has ended. Log in again." : "") });
    } else {
      session.set({ state: "away", error: e instanceof Error ? e.message : String(e) });
      retry = window.setTimeout(() => void begin(problem), 2000);
    }
  }
}

// Rights may end at any time: whoever is refused as a stranger is asked again who it is.
stranger.follow(() => {
  if (session.value.state === "known" || session.value.state === "open") void begin();
});

export async function logIn(username: string, password: string): Promise<void> {
  const answer = await post<{ token: string }>(`${login}login/`, { username, password });
  setToken(answer.token);
  await begin();
}

export async function logOut(): Promise<void> {
  await send("POST", `${login}logout/`).catch(() => undefined); // it ends by itself
  setToken("");
  await begin();
}

export function who(s: Session): string {
  if (s.state !== "known") return "";
  return s.who.kind === "anonymous" ? "not logged in" : s.who.name;
}

export function isAdmin(s: Session): boolean {
  return s.state === "open" || (s.state === "known" && (s.who.grants ?? []).some((g) => g.role === "admin"));
}
