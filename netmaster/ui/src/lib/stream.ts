// Answers without end: lines of text, read as they come, and asked for again when they break
// off: because a leader changed, the network was away, or the computer slept.
import { headers, Refusal, stranger } from "./api";
import { Cell } from "./cell";

export type State = "connecting" | "live" | "waiting" | "absent" | "refused";

const firstWait = 500; // milliseconds
const longestWait = 30_000;
const silentFor = 40_000; // a stream that says nothing for so long is dead: both send beats

export interface Source {
  // The path to ask for; it may say from where to go on.
  path(): string;
  // More headers of the request.
  headers?(): Record<string, string>;
  line(text: string): void;
  // The stream begins, maybe not for the first time.
  begins?(): void;
}

// A Stream runs from start to stop.
export class Stream {
  readonly state = new Cell<State>("connecting");
  error = "";
  private ended = false;
  private reading?: AbortController;
  private timer = 0;
  private failures = 0;

  constructor(private source: Source) {}

  start(): this {
    window.addEventListener("online", this.again);
    document.addEventListener("visibilitychange", this.shown);
    void this.run();
    return this;
  }

  stop(): void {
    this.ended = true;
    window.removeEventListener("online", this.again);
    document.removeEventListener("visibilitychange", this.shown);
    clearTimeout(this.timer);
    this.reading?.abort();
  }

  // Does not wait any longer.
  again = (): void => {
    if (this.ended || this.state.value !== "waiting") return;
    clearTimeout(this.timer);
    void this.run();
  };

  private shown = (): void => {
    if (!document.hidden) this.again();
  };

  private async run(): Promise<void> {
    this.state.set("connecting");
    try {
      await this.read();
      this.error = "the stream ended";
    } catch (e) {
      if (this.ended) return;
      this.error = e instanceof Error ? e.message : String(e);
      if (e instanceof Refusal && (e.absent || e.status === 403)) {
        this.state.set(e.absent ? "absent" : "refused");
        return;
      }
    }
    if (this.ended) return;
    const wait = Math.min(longestWait, firstWait * 2 ** this.failures++) * (0.5 + Math.random() / 2);
    this.state.set("waiting");
    this.timer = window.setTimeout(this.again, wait);
  }

  private async read(): Promise<void> {
    const reading = (this.reading = new AbortController());
    let silence = 0;
    const heard = () => {
      clearTimeout(silence);
      silence = window.setTimeout(() => reading.abort(), silentFor);
    };
    heard();
    try {
      const answer = await fetch(this.source.path(), {
        headers: { ...headers(), ...this.source.headers?.() }, cache: "no-store", credentials: "omit", redirect: "error", signal: reading.signal,
      });
      if (!answer.ok || !answer.body) {
        const text = (await answer.text()).trim();
        if (answer.status === 401 || answer.status === 400) stranger.set(stranger.value + 1);
        throw new Refusal(answer.status, text);
      }
      this.source.begins?.();
      this.state.set("live");
      await this.lines(answer.body, () => {
        this.failures = 0;
        heard();
      });
    } finally {
      clearTimeout(silence);
      reading.abort();
    }
  }

  private async lines(body: ReadableStream<Uint8Array>, heard: () => void): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.ended) return;
      heard();
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.source.line(line);
    }
  }
}
