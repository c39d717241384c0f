import { alerts } from "../lib/alerts";
import { useCell } from "../lib/cell";
import { applied, cluster, endpoints, health, version } from "../lib/cluster";
import { model } from "../lib/model";
import { link } from "../lib/route";
import { kinds } from "../lib/schema";
import { Ago, Badge, count, Named, Page, Panel, plural } from "../parts/bits";

export function Overview() {
  useCell(model.version);
  const [h, c, a, all, v] = [useCell(health), useCell(cluster), useCell(applied), useCell(endpoints), useCell(version)];
  const found = alerts(h, c, a);
  const hosts = c.data?.hosts ?? [];
  const up = hosts.filter((x) => x.state === "up").length;
  const done = a.data ? a.data.hosts - (a.data.missing?.length ?? 0) : 0;
  const bad = found.some((f) => f.tone === "bad");
  const leader = h.data?.leader ? `leader ${h.data.leader}` : "";
  return (
    <Page
      title="Overview"
      note={[leader, v.data && `version ${v.data.Version}`, c.data && `revision ${c.data.revision}`].filter(Boolean).join(" · ")}
      actions={h.at > 0 && <Badge tone={bad ? "bad" : found.length ? "warn" : "good"}>{bad ? "Needs attention" : found.length ? "Catching up" : "Healthy"}</Badge>}
    >
      <div class="cards">
        {c.data && <Card href={link(["hosts"])} of={`${count(up)} of ${count(hosts.length)}`} what="hosts up" part={up / hosts.length} />}
        {a.data && (
          <Card href={c.data ? link(["hosts"]) : undefined} of={`${count(done)} of ${count(a.data.hosts)}`} what="hosts have applied all changes" part={done / a.data.hosts} name="applied" />
        )}
        {all.data && <Card href={link(["objects", "endpoints"])} of={count(all.data.length)} what="endpoints" />}
        {["network", "endpointGroup", "policy", "serviceLB"].map((k) => {
          const kind = kinds.value.get(k);
          return kind && <Card key={k} href={link(["objects", k])} of={count(model.list(k).size)} what={kind.plural.toLowerCase()} />;
        })}
      </div>
      <div class="two">
        <Panel title="Alerts" actions={<span class="quiet">{found.length || ""}</span>}>
          {found.length === 0 ? (
            <p class="empty">No alerts.</p>
          ) : (
            <ul class="list alerts">
              {found.slice(0, 50).map((f) => (
                <li key={f.what + f.why}>
                  <Badge tone={f.tone}>{f.tone === "bad" ? "Problem" : "Behind"}</Badge>
                  <span>
                    {f.href && c.data ? <a href={f.href}>{f.what}</a> : <b>{f.what}</b>} {f.why}
                  </span>
                  {f.since && (
                    <span class="end">
                      <Ago at={f.since} />
                    </span>
                  )}
                </li>
              ))}
              {found.length > 50 && <li class="quiet">and {plural(found.length - 50, "more", "more")}</li>}
            </ul>
          )}
        </Panel>
        <Panel title="Latest changes" actions={<a href={link(["changes"])}>All</a>}>
          <Latest />
        </Panel>
      </div>
    </Page>
  );
}

function Card(p: { href?: string | undefined; of: string; what: string; part?: number; name?: string }) {
  const inside = (
    <>
      <div class="of">{p.of}</div>
      <div class="what">{p.what}</div>
      {p.part !== undefined && !Number.isNaN(p.part) && (
        <div class="meter" aria-hidden="true">
          <i class={p.part < 1 ? "warn" : ""} style={{ width: `${Math.round(p.part * 100)}%` }} />
        </div>
      )}
    </>
  );
  const name = p.name ?? p.what;
  return p.href ? <a class="card" href={p.href} data-card={name}>{inside}</a> : <div class="card" data-card={name}>{inside}</div>;
}

const tones = { added: "good", changed: "accent", removed: "bad" } as const;

function Latest() {
  const last = model.changes.slice(-8).reverse();
  if (last.length === 0) return <p class="empty">No changes since the page was opened.</p>;
  return (
    <ul class="list">
      {last.map((c) => (
        <li key={`${c.at}${c.kind}${c.key}`}>
          <Badge tone={tones[c.event]}>{c.event}</Badge>
          <span>
            <span class="quiet">{kinds.value.get(c.kind)?.title ?? c.kind}</span> <Named kind={c.kind} id={c.key} />
          </span>
          <span class="end">
            <Ago at={c.at} />
          </span>
        </li>
      ))}
    </ul>
  );
}
