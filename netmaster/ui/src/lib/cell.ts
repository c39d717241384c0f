// A Cell is a value that views follow.
import { useEffect, useReducer } from "preact/hooks";

export class Cell<T> {
  private readers = new Set<() => void>();

  constructor(private now: T) {}

  get value(): T {
    return this.now;
  }

  set(value: T): void {
    if (value === this.now) return;
    this.now = value;
    for (const reader of [...this.readers]) reader();
  }

  // Calls reader after each change, until the function that it returns is called.
  follow(reader: () => void): () => void {
    this.readers.add(reader);
    if (this.readers.size === 1) this.begin();
    return () => {
      this.readers.delete(reader);
      if (this.readers.size === 0) this.end();
    };
  }

  // For cells that fetch their value while somebody follows it.
  protected begin(): void {}
  protected end(): void {}
}

export function useCell<T>(cell: Cell<T>): T {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    draw(undefined);
    return cell.follow(() => draw(undefined));
  }, [cell]);
  return cell.value;
}
