// Forms: fields, then what they change, then the change itself.
import { useMemo, useState } from "preact/hooks";
import { objectPath, send, words } from "../lib/api";
import { label } from "../lib/labels";
import { model, text, type Content, type Value } from "../lib/model";
import { decides } from "../lib/preview";
import { go, link, route } from "../lib/route";
import { type Kind } from "../lib/schema";
import { noteSaved } from "../parts/applied";
import { Message } from "../parts/bits";
import { Input, problem } from "../parts/field";
import { PreviewOf } from "../parts/preview";

// id is empty for a new object.
export function Edit({ kind, id, back }: { kind: Kind; id: string; back: string }) {
  const before = useMemo(() => (id ? settings(kind, model.find(kind.type, id) ?? {}) : {}), [kind, id]);
  const [after, setAfter] = useState<Content>(() => (id ? before : initial(kind)));
  const [review, setReview] = useState(false);
  const [tried, setTried] = useState(false);
  const wrong = kind.fields.filter((f) => problem(f, after[f.name]));
  const key = kind.names.map((n) => text(after, n)).join(":");
  const exists = !id && model.find(kind.type, key) !== undefined;
  const changed = differences(kind, before, after);
  const next = (e: Event) => {
    e.preventDefault();
    setTried(true);
    if (wrong.length === 0 && !exists && changed.length > 0) setReview(true);
  };
  return (
    <aside class="detail" aria-label={id ? `Edit ${id}` : `New ${kind.title}`}>
      <header>
        <h2>
          <span class="quiet">{id ? "Edit" : "New"}</span> {id || kind.title.toLowerCase()}
        </h2>
        <a class="button" href={back} aria-label="Close">
          ✕
        </a>
      </header>
      {review ? (
        <Review kind={kind} id={key} object={after} changed={changed} fresh={!id} again={() => setReview(false)} />
      ) : (
        <form class="form" noValidate onSubmit={next}>
          {kind.fields.filter((f) => f.type !== "objects").map((f) => (
            <Input key={f.name} kind={kind} field={f} object={after} fixed={id !== "" && (f.immutable || kind.names.includes(f.name))} set={(v) => setAfter((o) => ({ ...o, [f.name]: v }))} />
          ))}
          {tried && wrong.length > 0 && <Message tone="bad">Look at: {wrong.map((f) => label(f.name)).join(", ")}.</Message>}
          {exists && <Message tone="bad">There is one of this name already.</Message>}
          {tried && id && changed.length === 0 && <Message tone="calm">Nothing has changed.</Message>}
          <div class="actions">
            <button class="main">Review</button>
            <a class="button" href={back}>
              Cancel
            </a>
          </div>
        </form>
      )}
    </aside>
  );
}

function Review(p: { kind: Kind; id: string; object: Content; changed: Difference[]; fresh: boolean; again(): void }) {
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const object = settings(p.kind, p.object);
  const save = async () => {
    setBusy(true);
    try {
      noteSaved(await send("PUT", objectPath(p.kind.collection, p.id), { key: p.id, ...object }));
      go(link(["objects", p.kind.type, p.id], { q: route.value.query.get("q") ?? "", saved: "1" }));
    } catch (e) {
      setFailure(words(e));
      setBusy(false);
    }
  };
  return (
    <div class="review">
      <Diff changed={p.changed} />
      {decides.has(p.kind.type) && <PreviewOf changes={[{ verb: "put", kind: p.kind.collection, key: p.id, object }]} />}
      {failure && <Message tone="bad">{failure}</Message>}
      <div class="actions">
        <button type="button" class="main" disabled={busy} onClick={() => void save()}>
          {p.fresh ? "Create" : "Save"}
        </button>
        <button type="button" onClick={p.again}>
          Back
        </button>
      </div>
    </div>
  );
}

export interface Difference {
  name: string;
  before: string;
  after: string;
}

export function Diff({ changed }: { changed: Difference[] }) {
  return (
    <table class="diff">
      <caption class="hidden-label">What changes</caption>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
        </tr>
      </thead>
      <tbody>
        {changed.map((d) => (
          <tr key={d.name}>
            <th scope="row">{label(d.name)}</th>
            <td>{d.before && <del>{d.before}</del>}</td>
            <td>{d.after && <ins>{d.after}</ins>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function differences(kind: Kind | undefined, before: Content, after: Content): Difference[] {
  const names = kind ? kind.fields.map((f) => f.name) : [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((n) => n !== "key" && !n.startsWith("link"));
  const hide = (name: string, v: string) => (name === "password" && v ? "••••••" : v);
  return names
    .map((name) => ({ name, before: text(before, name), after: text(after, name) }))
    .filter((d) => d.before !== d.after && !(isZero(d.before) && isZero(d.after)))
    .map((d) => ({ ...d, before: hide(d.name, d.before), after: hide(d.name, d.after) }));
}

function isZero(text: string): boolean {
  return text === "" || text === "0" || text === "false";
}

// The settings of an object, without what netmaster adds.
function settings(kind: Kind, o: Content): Content {
  const out: Content = {};
  for (const f of kind.fields) {
    const v = o[f.name];
    if (v !== undefined && v !== null) out[f.name] = v;
  }
  return out;
}

// A new object: what is usual, and what the link to the form says.
function initial(kind: Kind): Content {
  const out: Content = {};
  for (const f of kind.fields) {
    const given: Value | undefined = route.value.query.get(`f.${f.name}`) ?? f.initial ?? (f.required && f.choices?.length === 1 ? f.choices[0] : undefined);
    if (given === undefined) continue;
    out[f.name] = f.type === "integer" ? Number(given) : f.type === "list" ? String(given).split(",") : given;
  }
  if (kind.tenanted && !out["tenantName"] && model.list("tenant").size === 1) out["tenantName"] = [...model.list("tenant").keys()][0] ?? "";
  return out;
}
