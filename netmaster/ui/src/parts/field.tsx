// Fields of forms, made of the description of a kind.
import { useId } from "preact/hooks";
import { list, model, text, type Content, type Value } from "../lib/model";
import { kinds, type Field, type Kind } from "../lib/schema";
import { label } from "../lib/labels";

interface Props {
  kind: Kind;
  field: Field;
  object: Content;
  fixed: boolean; // cannot change any more
  set(value: Value): void;
}

export function Input({ kind, field: f, object, fixed, set }: Props) {
  const id = useId();
  const value = text(object, f.name);
  const wrong = problem(f, object[f.name]);
  const names = f.refers ? choicesOf(f.refers, kind, object) : [];
  return (
    <div class={`field ${wrong && value ? "invalid" : ""}`} data-field={f.name}>
      <label for={id}>
        {label(f.name)}
        {f.required && <span class="quiet"> required</span>}
      </label>
      {f.type === "list" ? (
        <List id={id} field={f} items={list(object, f.name)} names={names} set={set} disabled={fixed} />
      ) : f.type === "boolean" ? (
        <input id={id} type="checkbox" checked={object[f.name] === true} disabled={fixed} aria-describedby={`${id}-help`} onChange={(e) => set(e.currentTarget.checked)} />
      ) : f.choices ? (
        <select id={id} value={value} disabled={fixed} onChange={(e) => set(e.currentTarget.value)} aria-describedby={`${id}-help`}>
          {(!f.required || !value) && !f.choices.includes("") && <option value="">–</option>}
          {f.choices.map((c) => (
            <option key={c} value={c}>
              {c || "–"}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id} name={f.name} value={value} disabled={fixed} required={f.required} maxLength={f.maxLength ?? 1024} list={names.length ? `${id}-names` : undefined} autocomplete="off" spellcheck={false}
          type={f.name === "password" ? "password" : "text"} inputMode={f.type === "integer" ? "numeric" : undefined} aria-describedby={`${id}-help`} aria-invalid={wrong && value ? "true" : undefined}
          onInput={(e) => set(f.type === "integer" ? number(e.currentTarget.value) : e.currentTarget.value)}
        />
      )}
      {names.length > 0 && (
        <datalist id={`${id}-names`}>
          {names.map((n) => (
            <option key={n} value={n} />
          ))}
        </datalist>
      )}
      <p class="help" id={`${id}-help`}>
        {wrong && value ? <span class="bad-text">{wrong}</span> : fixed ? "Cannot change." : f.description}
      </p>
    </div>
  );
}

function List({ id, field: f, items, names, set, disabled }: { id: string; field: Field; items: string[]; names: string[]; set(v: Value): void; disabled: boolean }) {
  const shown = [...items, ""];
  const change = (at: number, value: string) => {
    const next = [...items];
    if (value === "" && at < items.length) next.splice(at, 1);
    else next[at] = value;
    set(next);
  };
  return (
    <div class="items">
      {shown.map((item, i) => (
        <input
          key={i} id={i === 0 ? id : undefined} name={f.name} value={item} disabled={disabled} list={names.length ? `${id}-names` : undefined} autocomplete="off" spellcheck={false}
          aria-label={`${label(f.name)} ${i + 1}`} aria-describedby={`${id}-help`} maxLength={1024} onInput={(e) => change(i, e.currentTarget.value)}
        />
      ))}
    </div>
  );
}

function number(text: string): Value {
  return text.trim() === "" ? null : /^\d+$/.test(text.trim()) ? Number(text) : text;
}

// The names of objects that a field may refer to, in the tenant that the form names.
function choicesOf(type: string, kind: Kind, object: Content): string[] {
  const target = kinds.value.get(type);
  const tenant = text(object, "tenantName");
  const found: string[] = [];
  for (const o of model.list(type).values()) {
    if (found.length >= 500) break;
    if (kind.tenanted && target?.tenanted && text(o, "tenantName") !== tenant) continue;
    found.push(text(o, target?.names.at(-1) ?? ""));
  }
  return found.sort();
}

// What is wrong with a value, as far as the description of its kind says; "" if nothing is.
export function problem(f: Field, value: Value | undefined): string {
  const empty = value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
  if (empty) return f.required ? "This is needed." : "";
  if (f.type === "integer") {
    if (typeof value !== "number") return "A number is expected.";
    if (f.min !== undefined && value < f.min) return `At least ${f.min} is expected.`;
    if (f.max !== undefined && value > f.max) return `At most ${f.max} is expected.`;
    return "";
  }
  const texts = Array.isArray(value) ? value.map(String) : [String(value)];
  for (const t of texts) {
    if (f.maxLength !== undefined && t.length > f.maxLength) return `At most ${f.maxLength} characters are expected.`;
    const pattern = f.item?.pattern ?? f.pattern;
    if (pattern && !pattern.test(t)) return f.description || "This is not of the form that is expected.";
  }
  return "";
}
