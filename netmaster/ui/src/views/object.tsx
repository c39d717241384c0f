// One object: its fields, what it names, what names it, and what is known of it besides.
import { useEffect, useState } from "preact/hooks";
import { get, words } from "../lib/api";
import { useCell } from "../lib/cell";
import { label } from "../lib/labels";
import { list, model, referrers, refersTo, text, type Content } from "../lib/model";
import { kinds, type Field, type Kind } from "../lib/schema";
import { useCan } from "../lib/rights";
import { link, route } from "../lib/route";
import { Message, Named } from "../parts/bits";
import { AppliedNow } from "../parts/applied";
import { Remove } from "./remove";

export function Detail({ kind, id, back }: { kind: Kind; id: string; back: string }) {
  useCell(model.version);
  const loaded = useCell(model.loaded);
  const object = model.find(kind.type, id);
  const [removing, setRemoving] = useState(false);
  const may = { update: useCan("update", `${kind.type}/${id}`) && kind.fields.some((f) => !f.immutable), delete: useCan("delete", `${kind.type}/${id}`) };
  const query = useCell(route).query;
  return (
    <aside class="detail" aria-label={`${kind.title} ${id}`}>
      <header>
        <h2>
          <span class="quiet">{kind.title}</span> {id}
        </h2>
        {object && may.update && (
          <a class="button" href={link(["objects", kind.type, id], { q: query.get("q") ?? "", edit: "1" })}>
            Edit
          </a>
        )}
        {object && may.delete && kind.type !== "global" && (
          <button type="button" class="danger" onClick={() => setRemoving(true)}>
            Delete
          </button>
        )}
        <a class="button" href={back} aria-label="Close">
          ✕
        </a>
      </header>
      {query.get("saved") && <AppliedNow />}
      {object && removing && <Remove kind={kind} id={id} back={back} cancel={() => setRemoving(false)} />}
      {object ? (
        <Known kind={kind} id={id} object={object} />
      ) : (
        <div>
          <Message tone="calm">{loaded ? "There is no such object, or it is gone." : "Loading …"}</Message>
        </div>
      )}
    </aside>
  );
}

function Known({ kind, id, object }: { kind: Kind; id: string; object: Content }) {
  const naming = referrers(kind.type, id);
  return (
    <>
      <div>
        <dl>
          {kind.fields.map((f) => (
            <Entry key={f.name} kind={kind} object={object} field={f} />
          ))}
        </dl>
      </div>
      {naming.length > 0 && (
        <div>
          <h3>Used by</h3>
          <ul>
            {naming.slice(0, 100).map((r) => (
              <li key={r.kind + r.key + r.field}>
                <span class="quiet">{kinds.value.get(r.kind)?.title}</span> <Named kind={r.kind} id={r.key} />
              </li>
            ))}
            {naming.length > 100 && <li class="quiet">and {naming.length - 100} more</li>}
          </ul>
        </div>
      )}
      <Operation kind={kind} id={id} />
    </>
  );
}

function Entry({ kind, object, field: f }: { kind: Kind; object: Content; field: Field }) {
  const value = text(object, f.name);
  if (!value || (f.type === "objects" && !list(object, f.name).length)) return null;
  const names = f.type === "list" ? list(object, f.name) : [value];
  return (
    <>
      <dt title={f.description}>{label(f.name)}</dt>
      <dd>
        {f.type === "objects" ? (
          <pre>{JSON.stringify(object[f.name], null, 1)}</pre>
        ) : f.refers ? (
          names.map((n, i) => (
            <span key={n}>
              {i > 0 && ", "}
              <Named kind={f.refers ?? ""} id={f.refers === "tenant" ? n : refersTo(kind, object, n)}>
                {n}
              </Named>
            </span>
          ))
        ) : (
          names.join(", ")
        )}
      </dd>
    </>
  );
}

// What netmaster knows of an object besides its settings.
function Operation({ kind, id }: { kind: Kind; id: string }) {
  const version = useCell(model.version);
  const [oper, setOper] = useState<Content>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const asking = new AbortController();
    const ask = () =>
      get<{ Oper?: Content }>(`/api/v1/inspect/${kind.collection}/${encodeURIComponent(id)}/`, asking.signal).then(
        (a) => (setOper(a.Oper ?? {}), setProblem("")),
        (e) => asking.signal.aborted || setProblem(words(e)),
      );
    void ask();
    const timer = setInterval(() => document.hidden || void ask(), 10_000);
    return () => (asking.abort(), clearInterval(timer));
  }, [kind, id, version]);
  const plain = Object.entries(oper ?? {}).filter(([, v]) => v !== null && typeof v !== "object" && v !== "");
  const lists = Object.entries(oper ?? {}).filter(([, v]) => Array.isArray(v) && v.length > 0);
  if (problem) return <div><Message tone="warn">{problem}</Message></div>;
  if (!plain.length && !lists.length) return null;
  return (
    <div>
      <h3>In operation</h3>
      <dl>
        {plain.map(([name, v]) => (
          <>
            <dt>{label(name)}</dt>
            <dd>{String(v)}</dd>
          </>
        ))}
        {lists.map(([name, v]) => (
          <>
            <dt>{label(name)}</dt>
            <dd>{(v as unknown[]).slice(0, 50).map(short).join(", ")}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}

function short(v: unknown): string {
  if (v === null || typeof v !== "object") return String(v);
  const o = v as Record<string, unknown>;
  if (o["rule"] !== undefined) return `${String(o["rule"])}: ${String(o["packets"])} packets, ${String(o["bytes"])} bytes`;
  const name = o["containerName"] || o["endpointID"] || o["key"] || o["networkName"] || o["groupName"] || o["address"];
  return name ? String(name) : JSON.stringify(v);
}
