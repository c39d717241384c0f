// What the API has no stream of is asked for again and again, while somebody looks at it.
import { Cell } from "./cell";
import { get, Refusal } from "./api";

export interface Answer<T> {
  data?: T;
  error?: Refusal;
  at: number; // when it came; 0: none yet
}

export class Polled<T> extends Cell<Answer<T>> {
  private timer = 0;
  private asking?: AbortController;
  private wake = () => {
    if (!document.hidden) void this.ask();
  };

  // every: in milliseconds
  constructor(private path: string, private every: number, private load: (path: string, signal: AbortSignal) => Promise<T> = get) {
    super({ at: 0 });
  }

  protected override begin(): void {
    document.addEventListener("visibilitychange", this.wake);
    void this.ask();
  }

  protected override end(): void {
    document.removeEventListener("visibilitychange", this.wake);
    this.asking?.abort();
    clearTimeout(this.timer);
  }

  // Forgets the answer, which was somebody else's.
  reset(): void {
    this.set({ at: 0 });
  }

  async ask(): Promise<void> {
    this.asking?.abort();
    clearTimeout(this.timer);
    const mine = (this.asking = new AbortController());
    try {
      const data = await this.load(this.path, mine.signal);
      if (!mine.signal.aborted) this.set({ data, at: Date.now() });
    } catch (e) {
      if (mine.signal.aborted) return;
      const error = e instanceof Refusal ? e : new Refusal(0, String(e));
      // What was known stays while netmaster is away, not when it refuses.
      this.set(error.status === 0 || error.status === 503 ? { ...this.value, error, at: Date.now() } : { error, at: Date.now() });
    }
    if (!mine.signal.aborted && !document.hidden) this.timer = window.setTimeout(() => void this.ask(), this.every);
  }
}
