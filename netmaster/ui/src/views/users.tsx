// Users, what they may do, and tokens of scripts.
import { useState } from "preact/hooks";
import { authorizations, login, tokens, users, type Authorization, type ServiceToken, type User } from "../lib/accounts";
import { post, send, words } from "../lib/api";
import { useCell } from "../lib/cell";
import { model } from "../lib/model";
import { isAdmin, session } from "../lib/session";
import { Ago, Badge, Message, Page, Panel } from "../parts/bits";

export function Users() {
  const s = useCell(session);
  return (
    <Page title="Users">
      {isAdmin(s) && (
        <div class="two">
          <UserList />
          <Roles />
        </div>
      )}
      <Tokens />
    </Page>
  );
}

// Does something and says what has become of it.
function useDoing(after: () => Promise<void>): [string, (f: () => Promise<unknown>) => void] {
  const [problem, setProblem] = useState("");
  return [
    problem,
    (f) => {
      f().then(
        () => (setProblem(""), after()),
        (e) => setProblem(words(e)),
      );
    },
  ];
}

// A button that asks once more.
function Sure({ what, act }: { what: string; act(): void }) {
  const [asked, ask] = useState(false);
  return (
    <button type="button" class={asked ? "danger" : "plain"} onBlur={() => ask(false)} onClick={() => (asked ? act() : ask(true))}>
      {asked ? `Really ${what.toLowerCase()}?` : what}
    </button>
  );
}

function fieldsOf(e: Event): Record<string, string> {
  e.preventDefault();
  const form = e.currentTarget as HTMLFormElement;
  const out = Object.fromEntries([...new FormData(form)].map(([k, v]) => [k, String(v)]));
  form.reset();
  return out;
}

function UserList() {
  const answer = useCell(users);
  const [problem, act] = useDoing(() => users.ask());
  const path = (u: User) => `${login}local_users/${encodeURIComponent(u.username)}/`;
  const create = (e: Event) => {
    const f = fieldsOf(e);
    act(() => post(`${login}local_users/`, { username: f["username"], password: f["password"], first_name: "", last_name: "", disable: false }));
  };
  return (
    <Panel title="Users">
      <ul class="list">
        {(answer.data ?? []).map((u) => (
          <li key={u.username}>
            <b>{u.username}</b>
            <span class="quiet">
              {u.first_name} {u.last_name}
            </span>
            {u.disable && <Badge tone="warn">disabled</Badge>}
            <span class="end">
              <button type="button" class="plain" onClick={() => act(() => send("PATCH", path(u), { disable: !u.disable }))}>
                {u.disable ? "Enable" : "Disable"}
              </button>
              <Sure what="Delete" act={() => act(() => send("DELETE", path(u)))} />
            </span>
          </li>
        ))}
      </ul>
      {problem && <Message tone="bad">{problem}</Message>}
      <form class="bar in" aria-label="New user" onSubmit={create}>
        <input name="username" required placeholder="New user" aria-label="Name of the new user" autocomplete="off" maxLength={64} />
        <input name="password" type="password" required placeholder="Password" aria-label="Password of the new user" autocomplete="new-password" maxLength={256} />
        <button>Create</button>
      </form>
    </Panel>
  );
}

function TenantField() {
  return (
    <select name="tenant" aria-label="Tenant">
      <option value="">all tenants</option>
      {[...model.list("tenant").keys()].sort().map((t) => (
        <option key={t}>{t}</option>
      ))}
    </select>
  );
}

function Roles() {
  const answer = useCell(authorizations);
  const [problem, act] = useDoing(() => authorizations.ask());
  const create = (e: Event) => {
    const f = fieldsOf(e);
    act(() => post(`${login}authorizations/`, { principalName: f["principal"], local: f["group"] !== "on", role: f["role"], tenantName: f["tenant"] }));
  };
  const name = (a: Authorization) => `${a.Role}${a.TenantName ? ` of ${a.TenantName}` : ""}`;
  return (
    <Panel title="Roles">
      <ul class="list">
        {(answer.data ?? []).map((a) => (
          <li key={a.AuthzUUID}>
            <b>{a.PrincipalName}</b> {!a.Local && <span class="quiet">group</span>} <Badge tone="accent">{name(a)}</Badge>
            <span class="end">
              <Sure what="Take away" act={() => act(() => send("DELETE", `${login}authorizations/${encodeURIComponent(a.AuthzUUID)}/`))} />
            </span>
          </li>
        ))}
      </ul>
      {problem && <Message tone="bad">{problem}</Message>}
      <form class="bar in" aria-label="New role" onSubmit={create}>
        <input name="principal" required placeholder="User or group" aria-label="User or group" autocomplete="off" maxLength={256} />
        <label>
          <input type="checkbox" name="group" /> group of LDAP or OIDC
        </label>
        <RoleField />
        <TenantField />
        <button>Give</button>
      </form>
    </Panel>
  );
}

function RoleField() {
  return (
    <select name="role" aria-label="Role">
      {["viewer", "ops", "admin"].map((r) => (
        <option key={r}>{r}</option>
      ))}
    </select>
  );
}

function Tokens() {
  const answer = useCell(tokens);
  const [made, setMade] = useState("");
  const [problem, act] = useDoing(() => tokens.ask());
  const create = (e: Event) => {
    const f = fieldsOf(e);
    act(async () => {
      const t = await post<{ token: string }>(`${login}tokens/`, { name: f["name"], role: f["role"], tenantName: f["tenant"], ttl: f["ttl"] });
      setMade(t.token);
    });
  };
  return (
    <Panel title="Service tokens">
      <ul class="list">
        {(answer.data ?? []).map((t: ServiceToken) => (
          <li key={t.id}>
            <b>{t.name}</b>{" "}
            <Badge tone="accent">
              {t.role}
              {t.tenantName ? ` of ${t.tenantName}` : ""}
            </Badge>
            <span class="quiet">
              made by {t.creator} <Ago at={t.created} />, ends {new Date(t.expires).toLocaleString()}
            </span>
            <span class="end">
              <Sure what="Delete" act={() => act(() => send("DELETE", `${login}tokens/${encodeURIComponent(t.id)}/`))} />
            </span>
          </li>
        ))}
        {answer.data?.length === 0 && <li class="quiet">None.</li>}
      </ul>
      {problem && <Message tone="bad">{problem}</Message>}
      {made && (
        <div class="in">
          <Message tone="good">The token is shown once: copy it now.</Message>
          <pre class="token">{made}</pre>
          <button type="button" onClick={() => setMade("")}>
            I have it
          </button>
        </div>
      )}
      <form class="bar in" aria-label="New token" onSubmit={create}>
        <input name="name" required placeholder="New token" aria-label="Name of the new token" autocomplete="off" maxLength={64} />
        <RoleField />
        <TenantField />
        <select name="ttl" aria-label="Valid for">
          <option value="24h">a day</option>
          <option value="720h">30 days</option>
          <option value="8760h">a year</option>
        </select>
        <button>Create</button>
      </form>
    </Panel>
  );
}
