// Connections as hosts record them: the types of state/flowapi, and a stream of them.
import { Cell } from "./cell";
import { Stream } from "./stream";

export type Verdict = "allowed" | "denied" | "rejected";

export interface End {
  address: string;
  port?: number;
  endpoint?: string;
  name?: string;
  group?: string;
  network?: string;
  tenant?: string;
  host?: string;
}

export interface Decision {
  host: string;
  at: "source" | "destination" | "both";
  by: string;
  policy?: string;
  rule?: string;
  verdict: Verdict;
}

export interface FlowRecord {
  id: string;
  start: string;
  end?: string;
  hosts: string[] | null;
  tenant: string;
  verdict: Verdict;
  proto: string;
  src: End;
  dst: End;
  service?: { name: string; address: string; port?: number };
  decisions: Decision[] | null;
  wouldBe?: Decision;
  packets?: number;
  bytes?: number;
  count: number;
}

export interface Gap {
  host: string;
  from: string;
  to: string;
  count: number;
  why: string;
}

export interface Missing {
  host: string;
  error: string;
}

interface Event {
  record?: FlowRecord;
  gap?: Gap;
  missing?: Missing;
  heartbeat?: { time: string; live?: boolean };
}

export interface Hits {
  tenant: string;
  by: string;
  policy?: string;
  rule?: string;
  verdict: Verdict;
  count: number;
  first?: string;
  last?: string;
  minutes?: number[];
  audit?: boolean;
}

export interface HitsAnswer {
  since: string;
  hits: Hits[] | null;
  missing?: Missing[];
}

const path = "/api/v1/flows/";
const most = 20_000; // records kept

// The records that a query selects, and those that come.
export class Flows {
  readonly version = new Cell(0);
  readonly records = new Map<string, FlowRecord>();
  gaps: Gap[] = [];
  missing = new Map<string, string>();
  live = false; // all that was recorded has come
  readonly stream: Stream;
  private due = 0;

  constructor(query: URLSearchParams) {
    this.stream = new Stream({
      path: () => `${path}?${query}`,
      begins: () => {
        this.records.clear(); // the stream begins with what was recorded, again
        this.gaps = [];
        this.missing.clear();
        this.live = false;
        this.draw();
      },
      line: (text) => text && this.take(JSON.parse(text) as Event),
    }).start();
  }

  stop(): void {
    this.stream.stop();
    clearTimeout(this.due);
  }

  take(e: Event): void {
    if (e.record) {
      this.records.delete(e.record.id);
      this.records.set(e.record.id, e.record);
      if (this.records.size > most) {
        const oldest = this.records.keys().next().value;
        if (oldest !== undefined) this.records.delete(oldest);
      }
    } else if (e.gap) this.gaps = [...this.gaps.slice(-99), e.gap];
    else if (e.missing) this.missing.set(e.missing.host, e.missing.error);
    else if (e.heartbeat?.live) this.live = true;
    else return;
    this.draw();
  }

  private draw(): void {
    if (this.due) return;
    this.due = window.setTimeout(() => {
      this.due = 0;
      this.version.set(this.version.value + 1);
    }, 200);
  }
}

export function endName(e: End): string {
  return e.name || e.endpoint || e.address;
}

// The port of an end, with the type and code of ICMP.
export function service(r: FlowRecord): string {
  const port = r.dst.port ?? 0;
  if (r.proto.startsWith("icmp")) return port ? `${r.proto} ${port >> 8}/${port & 255}` : r.proto;
  return port ? `${r.proto}/${port}` : r.proto;
}

const bys: Record<string, string> = {
  default: "default", "anti-spoofing": "anti-spoofing", frame: "kind of frame", "control-plane": "control plane", service: "service without provider", tunnel: "unknown tunnel", limit: "limit of connections",
};

export function ruleName(d: Decision | Hits | undefined): string {
  if (!d) return "";
  if (d.policy) return d.rule ? `${d.policy}/${d.rule}` : d.policy;
  return bys[d.by] ?? d.by;
}

// What decided: the rule that denied, or else the last that allowed by more than default.
export function decisive(r: FlowRecord): Decision | undefined {
  const all = r.decisions ?? [];
  if (r.verdict !== "allowed") return all.at(-1);
  return all.findLast((d) => d.by !== "default") ?? all.at(-1);
}

export function tone(v: Verdict): "good" | "bad" {
  return v === "allowed" ? "good" : "bad";
}
