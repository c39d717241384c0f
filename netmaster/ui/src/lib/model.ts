// All objects that the user may see, kept up to date by the stream of events, and what has
// happened to them in the past hour and since.
import { get } from "./api";
import { Cell } from "./cell";
import { kinds, type Kind } from "./schema";
import { Stream } from "./stream";

export type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
export type Content = Record<string, Value>;

interface Notice {
  event: "reset" | "added" | "changed" | "removed";
  revision?: number;
  objects: { kind: string; key: string; object?: Content }[];
}

export interface Change {
  at: number; // milliseconds since 1970
  event: "added" | "changed" | "removed";
  kind: string;
  key: string;
  before?: Content | undefined;
  after?: Content | undefined;
  revision: number;
}

const maxChanges = 5000;

// What netmaster remembers, see contivmodel.Changes.
interface Past {
  since: string;
  changes: { time: string; revision: number; event: Change["event"]; kind: string; key: string; before?: Content; after?: Content }[];
}
const none: ReadonlyMap<string, Content> = new Map();

class Model {
  // Grows with each change, so that views know when to draw.
  readonly version = new Cell(0);
  readonly loaded = new Cell(false);
  readonly changes: Change[] = []; // the newest last
  since = Date.now(); // from when on no change is missing
  private objects = new Map<string, Map<string, Content>>();
  private stream?: Stream;
  private lastID = "";
  private event = { id: "", data: "" };
  private due = 0;

  readonly state = new Cell<Stream["state"]["value"]>("connecting");

  start(): void {
    this.stop();
    const stream = (this.stream = new Stream({
      path: () => "/api/v1/watch",
      headers: (): Record<string, string> => (this.lastID ? { "Last-Event-ID": this.lastID } : {}),
      begins: () => (this.event = { id: "", data: "" }),
      line: (text) => this.line(text),
    }));
    stream.state.follow(() => this.state.set(stream.state.value));
    stream.start();
    void this.remember(stream);
  }

  // Puts what has happened before the page was opened in front of what it has seen itself.
  private async remember(stream: Stream): Promise<void> {
    const hour = new Date(Date.now() - 3_600_000).toISOString();
    let past: Past;
    try {
      past = await get<Past>(`/api/v1/changes?limit=${maxChanges}&since=${hour}`);
    } catch {
      return; // a netmaster of before: since says what there is
    }
    if (this.stream !== stream) return;
    const seen = new Set(this.changes.map((c) => `${c.revision} ${c.kind} ${c.key}`));
    const before = past.changes.filter((c) => !seen.has(`${c.revision} ${c.kind} ${c.key}`)).map(({ time, ...c }) => ({ ...c, at: Date.parse(time) }));
    this.changes.unshift(...before);
    this.since = Date.parse(past.since);
    this.draw();
  }

  stop(): void {
    this.stream?.stop();
    this.objects.clear();
    this.changes.length = 0;
    this.since = Date.now();
    this.lastID = "";
    this.loaded.set(false);
    this.draw();
  }

  // One line of server-sent events (WHATWG HTML, section 9.2.6).
  private line(text: string): void {
    if (text.startsWith("data:")) this.event.data += text.slice(5);
    else if (text.startsWith("id:")) this.event.id = text.slice(3).trim();
    else if (text === "") {
      if (this.event.data) this.apply(JSON.parse(this.event.data) as Notice);
      if (this.event.id) this.lastID = this.event.id;
      this.event = { id: "", data: "" };
    }
  }

  apply(n: Notice): void {
    if (n.event === "reset") {
      this.objects = new Map();
      for (const o of n.objects) this.ofKind(o.kind).set(o.key, o.object ?? {});
      this.loaded.set(true);
    } else {
      for (const o of n.objects) this.change(n.event, n.revision ?? 0, o.kind, o.key, o.object);
    }
    this.draw();
  }

  private change(event: Change["event"], revision: number, kind: string, key: string, after: Content | undefined): void {
    const all = this.ofKind(kind);
    const before = all.get(key);
    if (event === "removed") all.delete(key);
    else all.set(key, after ?? {});
    this.changes.push({ at: Date.now(), event, kind, key, before, after: event === "removed" ? undefined : after, revision });
    if (this.changes.length > maxChanges) this.changes.splice(0, this.changes.length - maxChanges);
  }

  private ofKind(kind: string): Map<string, Content> {
    let all = this.objects.get(kind);
    if (!all) this.objects.set(kind, (all = new Map()));
    return all;
  }

  // Views are told ten times a second at most, however much happens.
  private draw(): void {
    if (this.due) return;
    this.due = window.setTimeout(() => {
      this.due = 0;
      this.version.set(this.version.value + 1);
    }, 100);
  }

  list(kind: string): ReadonlyMap<string, Content> {
    return this.objects.get(kind) ?? none;
  }

  find(kind: string, key: string): Content | undefined {
    return this.objects.get(kind)?.get(key);
  }

  kindsPresent(): string[] {
    return [...this.objects.keys()];
  }
}

export const model = new Model();

export function text(o: Content | undefined, name: string): string {
  const v = o?.[name];
  return v === undefined || v === null ? "" : Array.isArray(v) ? v.map(String).join(", ") : String(v);
}

export function list(o: Content | undefined, name: string): string[] {
  const v = o?.[name];
  return Array.isArray(v) ? v.map(String) : [];
}

// The key of an object that a field of another names: in the same tenant, if it has one.
export function refersTo(kind: Kind | undefined, from: Content, name: string): string {
  return kind?.tenanted ? `${text(from, "tenantName")}:${name}` : name;
}

export interface Reference {
  kind: string;
  key: string;
  field: string;
}

// What names an object: the fields say which kinds they refer to.
export function referrers(kind: string, key: string): Reference[] {
  const found: Reference[] = [];
  for (const k of kinds.value.values()) {
    const naming = k.fields.filter((f) => f.refers === kind);
    if (!naming.length) continue;
    for (const [otherKey, o] of model.list(k.type)) {
      for (const f of naming) {
        const names = f.type === "list" ? list(o, f.name) : [text(o, f.name)];
        if (names.some((n) => n && refersTo(kinds.value.get(kind), o, n) === key)) found.push({ kind: k.type, key: otherKey, field: f.name });
      }
    }
  }
  return found;
}
