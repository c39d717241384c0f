import { useEffect, useState } from "preact/hooks";
import { words } from "../lib/api";
import { goToProvider, logIn, provider } from "../lib/session";
import { Message } from "../parts/bits";

export function Login({ error }: { error: string }) {
  const [problem, setProblem] = useState(error);
  const [busy, setBusy] = useState(false);
  const [elsewhere, setElsewhere] = useState("");
  useEffect(() => void provider().then(setElsewhere, () => undefined), []); // without it there is the form
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await logIn(String(form.get("user")), String(form.get("password")));
    } catch (failure) {
      setProblem(words(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form onSubmit={(e) => void submit(e)}>
        <img src="icon.svg" alt="" width="40" height="40" />
        <h1>Log in to Contiv</h1>
        {problem && <Message tone="bad">{problem}</Message>}
        <label>
          User <input name="user" required autocomplete="username" autocapitalize="none" spellcheck={false} maxLength={256} />
        </label>
        <label>
          Password <input name="password" type="password" required autocomplete="current-password" maxLength={1024} />
        </label>
        <button class="main" disabled={busy}>
          Log in
        </button>
        {elsewhere && (
          <a class="button" href={elsewhere} onClick={goToProvider}>
            Log in with OpenID Connect
          </a>
        )}
        <p class="quiet">The login ends with this tab, or after ten hours.</p>
      </form>
    </main>
  );
}
