// What surrounds every view: the way to the others, search, the tenant, who one is.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useCell } from "../lib/cell";
import { model } from "../lib/model";
import { link, route } from "../lib/route";
import { logOut, session, who } from "../lib/session";
import { next, theme } from "../lib/theme";
import { Finder } from "./finder";

export interface Place {
  name: string;
  title: string;
  icon: string; // path of an SVG of 16 × 16
  needs?: string; // a path of the API that must be allowed
  secured?: boolean; // there is none of it without TLS
  view(): ComponentChildren;
}

export function Shell({ places, children }: { places: Place[]; children: ComponentChildren }) {
  const here = useCell(route).path[0] ?? "overview";
  const [shown, show] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(() => show(false), [here]);
  return (
    <div class="app">
      <a class="skip" href={location.hash || "#/"} onClick={(e) => (e.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <a class="brand" href="#/">
        <img src="icon.svg" alt="" /> Contiv
      </a>
      <header class="top">
        <button type="button" class="menu-button plain" aria-expanded={shown} aria-controls="side" onClick={() => show(!shown)}>
          <span aria-hidden="true">☰</span>
          <span class="hidden-label">Menu</span>
        </button>
        <Finder />
        <Live />
        <ThemeButton />
        <Who />
      </header>
      <nav class={shown ? "side shown" : "side"} id="side" aria-label="Views">
        {places.map((p) => (
          <a key={p.name} href={link(p.name === "overview" ? [] : [p.name])} aria-current={here === p.name ? "page" : undefined}>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d={p.icon} />
            </svg>
            {p.title}
          </a>
        ))}
      </nav>
      <main class="main" ref={main} tabIndex={-1} id="main">
        {children}
      </main>
    </div>
  );
}

const states = { live: "Live", connecting: "Connecting", waiting: "Reconnecting", absent: "No live updates", refused: "No live updates" };

function Live() {
  const state = useCell(model.state);
  return (
    <span class={`badge push ${state === "live" ? "good" : "warn"}`} role="status" data-live={state}>
      {states[state]}
    </span>
  );
}

function ThemeButton() {
  const now = useCell(theme);
  const signs = { system: "◐", light: "☀", dark: "☾" };
  return (
    <button type="button" class="plain" onClick={next} title={`Theme: ${now}`} aria-label={`Theme: ${now}. Change`}>
      <span aria-hidden="true">{signs[now]}</span>
    </button>
  );
}

function Who() {
  const s = useCell(session);
  if (s.state !== "known") return null;
  const anonymous = s.who.kind === "anonymous";
  const roles = (s.who.grants ?? []).map((g) => (g.tenant ? `${g.role} of ${g.tenant}` : g.role)).join(", ");
  return (
    <>
      <span class="who" title={roles}>
        {who(s)} <span class="quiet">{roles}</span>
      </span>
      {anonymous ? (
        <button type="button" onClick={() => session.set({ state: "login", error: "" })}>
          Log in
        </button>
      ) : (
        <button type="button" class="plain" onClick={() => void logOut()}>
          Log out
        </button>
      )}
    </>
  );
}
