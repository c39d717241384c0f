// What a change would have done to recorded connections.
import { useState } from "preact/hooks";
import { Refusal, words } from "../lib/api";
import { endName, ruleName } from "../lib/flows";
import { preview, type ObjectChange, type Preview, type PreviewedFlow } from "../lib/preview";
import { clock, count, Message, plural } from "./bits";

export function PreviewOf({ changes }: { changes: ObjectChange[] }) {
  const [found, setFound] = useState<Preview>();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    try {
      setFound(await preview(changes));
      setProblem("");
    } catch (e) {
      setProblem(e instanceof Refusal && e.absent ? "This netmaster keeps no connections to try changes with." : words(e));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="preview">
      {!found && (
        <button type="button" disabled={busy} onClick={() => void ask()}>
          {busy ? "Trying …" : "Try it with the last hour"}
        </button>
      )}
      {problem && <Message tone="warn">{problem}</Message>}
      {found && <Outcome preview={found} />}
    </div>
  );
}

function Outcome({ preview: p }: { preview: Preview }) {
  return (
    <>
      <Message tone={p.wouldDeny ? "warn" : "good"}>
        This would have denied {count(p.wouldDeny)} and allowed {count(p.wouldAllow)} more of {plural(p.examined, "connection")} of the last hour.
      </Message>
      <Flows title="Would be denied" flows={p.denied ?? []} all={p.wouldDeny} />
      <Flows title="Would be allowed" flows={p.allowed ?? []} all={p.wouldAllow} />
      {p.missing?.length ? <Message tone="warn">Not asked: {p.missing.map((m) => `${m.host} (${m.error})`).join(", ")}</Message> : null}
      {p.gaps?.length ? <Message tone="warn">{plural(p.gaps.length, "gap")} in what was recorded.</Message> : null}
    </>
  );
}

function Flows({ title, flows, all }: { title: string; flows: PreviewedFlow[]; all: number }) {
  if (flows.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="flows">
        {flows.slice(0, 20).map(({ record: r, by }) => (
          <li key={r.id}>
            <span class="quiet">{clock(r.start)}</span> {endName(r.src)} → {endName(r.dst)} <span class="mono">{r.proto}{r.dst.port ? `/${r.dst.port}` : ""}</span> <span class="quiet">by {ruleName(by)}</span>
          </li>
        ))}
        {all > Math.min(20, flows.length) && <li class="quiet">and {count(all - Math.min(20, flows.length))} more</li>}
      </ul>
    </>
  );
}
