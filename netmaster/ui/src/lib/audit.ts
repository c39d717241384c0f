// The audit log of the netmaster that serves the page: JSON lines, see package audit.
import { Cell } from "./cell";
import { Stream } from "./stream";

export interface Entry {
  id: number;
  time: string;
  who: string;
  how: string;
  source: string;
  verb: string;
  path: string;
  kind?: string;
  key?: string;
  tenant?: string;
  status: number;
  reason?: string;
  revision?: string;
  dropped?: number;
}

export const auditPath = "/api/v1/security/audit";
const most = 10_000;

export class Audit {
  readonly version = new Cell(0);
  entries: Entry[] = []; // the newest last
  readonly stream: Stream;
  private due = 0;
  private next = 0;

  // hours of the past
  constructor(hours: number) {
    const since = new Date(Date.now() - hours * 3_600_000).toISOString().replace(/\.\d+Z/, "Z");
    this.stream = new Stream({
      path: () => `${auditPath}?follow=true&since=${encodeURIComponent(since)}`,
      begins: () => ((this.entries = []), this.draw()),
      line: (text) => {
        if (!text) return;
        this.entries.push({ ...(JSON.parse(text) as Entry), id: this.next++ });
        if (this.entries.length > most) this.entries.splice(0, this.entries.length - most);
        this.draw();
      },
    }).start();
  }

  stop(): void {
    this.stream.stop();
    clearTimeout(this.due);
  }

  private draw(): void {
    if (this.due) return;
    this.due = window.setTimeout(() => ((this.due = 0), this.version.set(this.version.value + 1)), 100);
  }
}
