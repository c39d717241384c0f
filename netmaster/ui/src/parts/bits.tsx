// Small parts that views are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { link } from "../lib/route";
import { kinds } from "../lib/schema";

export type Tone = "good" | "warn" | "bad" | "calm" | "accent";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Page(p: { title: ComponentChildren; note?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; fixed?: boolean }) {
  return (
    <div class={p.fixed ? "page fixed" : "page"}>
      <header class="head">
        <div>
          <h1>{p.title}</h1>
          {p.note && <p class="note">{p.note}</p>}
        </div>
        {p.actions && <div class="actions">{p.actions}</div>}
      </header>
      {p.children}
    </div>
  );
}

export function Panel(p: { title: string; actions?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${p.class ?? ""}`}>
      <header>
        <h2>{p.title}</h2>
        {p.actions}
      </header>
      {p.children}
    </section>
  );
}

// A link to an object.
export function Named({ kind, id, children }: { kind: string; id: string; children?: ComponentChildren }) {
  if (!kinds.value.has(kind)) return <span>{children ?? id}</span>;
  return <a href={link(["objects", kind, id])}>{children ?? id}</a>;
}

export function Message({ tone, children }: { tone: "bad" | "warn" | "calm" | "good"; children: ComponentChildren }) {
  return (
    <p class={`message ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </p>
  );
}

// How long ago something was, as time goes on.
export function Ago({ at }: { at: string | number }) {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => draw((n) => n + 1), 5000);
    return () => clearInterval(timer);
  }, []);
  const date = new Date(at);
  if (!at || Number.isNaN(date.getTime())) return <span>–</span>;
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {ago(Date.now() - date.getTime())}
    </time>
  );
}

export function ago(milliseconds: number): string {
  const s = Math.max(0, Math.round(milliseconds / 1000));
  if (s < 2) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.round(s / 60)} min ago`;
  if (s < 172_800) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86_400)} d ago`;
}

export function clock(at: string | number): string {
  const d = new Date(at);
  return Number.isNaN(d.getTime()) ? "" : d.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function count(n: number): string {
  return n.toLocaleString("en-US");
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
