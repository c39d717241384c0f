// Finds objects of all kinds, and endpoints, by parts of their names.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useCell } from "../lib/cell";
import { addresses, endpoints } from "../lib/cluster";
import { model } from "../lib/model";
import { go, link } from "../lib/route";
import { kinds } from "../lib/schema";

interface Hit {
  label: string;
  what: string;
  href: string;
}

const most = 12;

export function Finder() {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (e: KeyboardEvent) => {
      const typing = e.target instanceof HTMLElement && e.target.closest("input, textarea, select");
      if ((e.key === "k" && (e.ctrlKey || e.metaKey)) || (e.key === "/" && !typing)) {
        e.preventDefault();
        box.current?.focus();
      }
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, []);
  const close = () => (setQuery(""), setAt(0));
  return (
    <form class="find" role="search" onSubmit={(e) => e.preventDefault()}>
      <input
        ref={box} type="search" value={query} placeholder="Find an object or endpoint  ( / )" aria-label="Find an object or endpoint" role="combobox"
        aria-expanded={query !== ""} aria-controls="found" aria-autocomplete="list" autocomplete="off" spellcheck={false} maxLength={128}
        onInput={(e) => (setQuery(e.currentTarget.value), setAt(0))} onBlur={() => setTimeout(close, 200)}
        aria-activedescendant={query ? `found-${at}` : undefined}
        onKeyDown={(e) => {
          if (e.key === "Escape") close();
          if (e.key === "ArrowDown" || e.key === "ArrowUp") {
            e.preventDefault();
            setAt((n) => Math.max(0, Math.min(most - 1, n + (e.key === "ArrowDown" ? 1 : -1))));
          }
          if (e.key === "Enter") document.querySelector<HTMLElement>(`#found-${at}`)?.click();
        }}
      />
      {query && <Hits query={query} at={at} close={close} />}
    </form>
  );
}

function Hits({ query, at, close }: { query: string; at: number; close(): void }) {
  const version = useCell(model.version);
  const known = useCell(endpoints).data;
  const hits = useMemo(() => find(query.toLowerCase(), known ?? []), [query, version, known]);
  return (
    <ul class="hits" id="found" role="listbox" aria-label="What was found">
      {hits.map((h, i) => (
        <li key={h.href} id={`found-${i}`} role="option" aria-selected={i === at} onClick={() => (go(h.href), close())}>
          <span>{h.label}</span> <span class="quiet">{h.what}</span>
        </li>
      ))}
      {hits.length === 0 && <li class="quiet" role="option" aria-selected={false}>Nothing of that name</li>}
    </ul>
  );
}

function find(part: string, all: NonNullable<typeof endpoints.value.data>): Hit[] {
  const hits: Hit[] = [];
  for (const k of kinds.value.values()) {
    for (const key of model.list(k.type).keys()) {
      if (hits.length >= most) return hits;
      if (key.toLowerCase().includes(part)) hits.push({ label: key, what: k.title, href: link(["objects", k.type, key]) });
    }
  }
  for (const e of all) {
    if (hits.length >= most) break;
    const name = e.containerName || e.endpointID;
    if (`${name} ${e.endpointID} ${addresses(e)}`.toLowerCase().includes(part)) {
      hits.push({ label: name, what: `Endpoint ${addresses(e)}`, href: link(["objects", "endpoints", e.endpointID]) });
    }
  }
  return hits;
}
