// Who uses the page, and what for.
import { get, post, Refusal, send, setToken, stranger, token } from "./api";
import { Cell } from "./cell";

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
  | { state: "login"; error?: string }
  | { state: "open" } // without TLS everybody may do everything
  | { state: "known"; who: Identity };

export const session = new Cell<Session>({ state: "asking" });

const login = "/api/v1/auth_proxy/";

let retry = 0;

// Finds out whether the token is good, or none is needed.
export async function begin(): Promise<void> {
  clearTimeout(retry);
  try {
    session.set({ state: "known", who: await get<Identity>(`${login}whoami/`) });
  } catch (e) {
    const status = e instanceof Refusal ? e.status : 0;
    if (status === 404) session.set({ state: "open" });
    else if (status === 400 || status === 401 || status === 403) {
      const had = token.value !== "";
      setToken("");
      session.set(had ? { state: "login", error: "Your login has ended. Log in again." } : { state: "login" });
    } else {
      session.set({ state: "away", error: e instanceof Error ? e.message : String(e) });
      retry = window.setTimeout(() => void begin(), 2000);
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
