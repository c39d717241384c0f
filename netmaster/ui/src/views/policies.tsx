// Policies as a matrix: from the groups at the side to the groups at the top.
import { useMemo } from "preact/hooks";
import { useCell } from "../lib/cell";
import type { HitsAnswer } from "../lib/flows";
import { hits, hitsOf } from "../lib/hits";
import { audited, brief, cellName, matrix, verdicts, type Between } from "../lib/matrix";
import { model, text } from "../lib/model";
import { link, replaceQuery, route } from "../lib/route";
import { Ago, Badge, clock, count, Named, Page, Panel, plural } from "../parts/bits";
import { tenantOf, TenantChoice } from "../parts/tenant";

const most = 30; // groups on a side

export function Policies() {
  const version = useCell(model.version);
  const { query } = useCell(route);
  const tenant = tenantOf(query);
  const part = (query.get("q") ?? "").toLowerCase();
  const m = useMemo(() => matrix(tenant, part, most), [tenant, part, version]);
  const shown = m.groups;
  const answer = useCell(hits).data;
  const [from, to] = [query.get("from") ?? "", query.get("to") ?? ""];
  const chosen = m.cells.get(cellName(from, to));
  return (
    <Page
      title="Policies" note={`Rules between ${plural(m.all, "group")}; from the row to the column`}
      actions={
        <>
          <TenantChoice />
          <input type="search" placeholder="Groups" aria-label="Filter groups" value={query.get("q") ?? ""} maxLength={64} onInput={(e) => replaceQuery({ q: e.currentTarget.value })} />
        </>
      }
    >
      {m.all > most && <p class="quiet">The first {most} of {count(m.all)} groups are shown. Filter by name for others.</p>}
      {shown.length === 0 ? (
        <p class="empty">There are no groups.</p>
      ) : (
        <div class="table matrix" tabIndex={0} role="region" aria-label="Rules between groups">
          <table>
            <thead>
              <tr>
                <td class="corner">
                  <span class="hidden-label">From, to</span>
                </td>
                {shown.map((g) => (
                  <th key={g} scope="col">
                    {g}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((row) => (
                <tr key={row}>
                  <th scope="row">{row}</th>
                  {shown.map((column) => (
                    <Cell key={column} answer={answer} tenant={tenant} from={row} to={column} cell={m.cells.get(cellName(row, column))} chosen={row === from && column === to} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {from && to && (
        <Panel title={`${from} → ${to}`} actions={<a href={link(["flows"], { from, to, tenant })}>Connections</a>}>
          <Rules cell={chosen ?? []} tenant={tenant} />
        </Panel>
      )}
    </Page>
  );
}

const signs = { none: "·", audit: "?", allow: "✓", deny: "✕", both: "✓✕" };
const meanings = { none: "no rule", audit: "rules in audit mode, which decide nothing", allow: "allowed by rules", deny: "denied by rules", both: "some allowed, some denied" };

function Cell({ answer, tenant, from, to, cell, chosen }: { answer: HitsAnswer | undefined; tenant: string; from: string; to: string; cell: Between[] | undefined; chosen: boolean }) {
  const verdict = verdicts(cell);
  const sum = (cell ?? []).reduce((n, b) => n + (hitsOf(answer, tenant, text(b.rule, "policyName"), text(b.rule, "ruleId"))?.count ?? 0), 0);
  return (
    <td class={`cell ${verdict} ${chosen ? "chosen" : ""}`}>
      <button type="button" title={`${from} → ${to}: ${meanings[verdict]}`} aria-pressed={chosen} onClick={() => replaceQuery({ from, to })}>
        <span aria-hidden="true">{signs[verdict]}</span>
        <span class="hidden-label">
          {from} to {to}: {meanings[verdict]}
        </span>
        {sum > 0 && <span class="sum">{count(sum)}</span>}
      </button>
    </td>
  );
}

function Rules({ cell, tenant }: { cell: Between[]; tenant: string }) {
  const answer = useCell(hits).data;
  if (cell.length === 0) return <p class="empty">No rule is between these groups: what no other policy decides about is allowed.</p>;
  return (
    <ul class="list">
      {cell.map(({ key, rule, at }) => {
        const h = hitsOf(answer, tenant, text(rule, "policyName"), text(rule, "ruleId"));
        return (
          <li key={key + at}>
            {audited(rule) ? <Badge tone="calm">audit: {text(rule, "action")}</Badge> : <Badge tone={text(rule, "action") === "allow" ? "good" : "bad"}>{text(rule, "action")}</Badge>}
            <span>
              <span class="mono">{brief(rule)}</span> by{" "}
              <Named kind="rule" id={key}>
                {text(rule, "policyName")}/{text(rule, "ruleId")}
              </Named>{" "}
              <span class="quiet">
                priority {text(rule, "priority") || "1"}, at the {at === "source" ? "sender" : "receiver"}
              </span>
            </span>
            <span class="end">{h ? h.count ? <>{plural(h.count, "hit")}, <Ago at={h.last ?? ""} /></> : <>never hit since {clock(answer?.since ?? "")}</> : ""}</span>
          </li>
        );
      })}
    </ul>
  );
}
