// What has happened to objects in the past hour and since, who did it, and what connections there
// were then.
import { useMemo } from "preact/hooks";
import type { Audit } from "../lib/audit";
import { useCell } from "../lib/cell";
import { model, type Change } from "../lib/model";
import { link, replaceQuery, route } from "../lib/route";
import { useCan } from "../lib/rights";
import { kinds } from "../lib/schema";
import { session } from "../lib/session";
import { Badge, clock, Named, Page, Panel, plural } from "../parts/bits";
import { useAudit } from "./audit";
import { Diff, differences } from "./edit";
import { FlowsAround } from "./around";

const tones = { added: "good", changed: "accent", removed: "bad" } as const;

export function Changes() {
  const secure = useCell(session).state === "known";
  const audited = useCan("get", "/api/v1/security/audit");
  return secure && audited ? <Signed /> : <Shown />;
}

function Signed() {
  const log = useAudit(1);
  return <Shown log={log} />;
}

function Shown({ log }: { log?: Audit | undefined }) {
  const version = useCell(model.version);
  const { query } = useCell(route);
  const first = model.since;
  const at = Number(query.get("at")) || 0; // 0: now
  const until = at || Number.MAX_SAFE_INTEGER;
  const shown = useMemo(() => model.changes.filter((c) => c.at <= until).slice(-200).reverse(), [version, until]);
  return (
    <Page title="Changes" note={`${plural(model.changes.length, "change")} of objects since ${clock(first)}${at ? `; as of ${clock(at)}` : ""}`}>
      {model.changes.length > 0 && (
        <label class="slider">
          <span>{clock(first)}</span>
          <input
            type="range" min={first} max={Date.now()} step={1000} value={at || Date.now()} aria-label="Time" aria-valuetext={at ? clock(at) : "now"}
            onInput={(e) => replaceQuery({ at: Number(e.currentTarget.value) > Date.now() - 3000 ? "" : e.currentTarget.value })}
          />
          <span>now</span>
        </label>
      )}
      <div class="two">
        <Panel title="Objects">
          {shown.length === 0 ? (
            <p class="empty">Nothing has changed.</p>
          ) : (
            <ul class="list changes">
              {shown.map((c) => (
                <One key={`${c.at} ${c.kind} ${c.key} ${c.revision}`} change={c} log={log} />
              ))}
            </ul>
          )}
        </Panel>
        <FlowsAround at={at} />
      </div>
    </Page>
  );
}

function One({ change: c, log }: { change: Change; log: Audit | undefined }) {
  const kind = kinds.value.get(c.kind);
  const changed = differences(kind, c.before ?? {}, c.after ?? {});
  const who = log?.entries.findLast((e) => e.status < 400 && e.revision !== "" && Number(e.revision) === c.revision) ?? log?.entries.findLast((e) => e.status < 400 && e.kind === c.kind && e.key === c.key && Math.abs(Date.parse(e.time) - c.at) < 5000);
  return (
    <li>
      <Badge tone={tones[c.event]}>{c.event}</Badge>
      <div class="what">
        <span class="quiet">{kind?.title ?? c.kind}</span> <Named kind={c.kind} id={c.key} /> {who && <span class="quiet">by {who.who}</span>}
        {c.event === "changed" && changed.length > 0 && <Diff changed={changed} />}
      </div>
      <span class="end">
        <a href={link(["changes"], { at: String(c.at) })} title="Show what was then">
          {clock(c.at)}
        </a>
      </span>
    </li>
  );
}
