// A table that draws only the rows in sight, so that ten thousand of them cost no more than forty.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export interface Column<T> {
  name: string;
  title: string;
  cell(row: T): ComponentChildren;
  sort?(row: T): string | number; // default: not sortable
  kind?: "mono" | "number" | "wide"; // wide: left out on a phone
  width?: string;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  keyOf(row: T): string;
  href?(row: T): string;
  selected?: string;
  empty?: ComponentChildren;
  sorted?: string; // column, "-" before it for descending
  tone?(row: T): string;
}

const rowHeight = 33; // pixels, as in the style sheet
const more = 12; // rows beyond what is in sight

export function Table<T>(p: Props<T>) {
  const frame = useRef<HTMLDivElement>(null);
  const [from, setFrom] = useState(0);
  const [height, setHeight] = useState(600);
  const [order, setOrder] = useState(p.sorted ?? "");
  useLayoutEffect(() => {
    const at = frame.current;
    if (!at) return;
    const measure = new ResizeObserver(() => setHeight(at.clientHeight));
    measure.observe(at);
    return () => measure.disconnect();
  }, []);
  const rows = useMemo(() => sort(p.rows, p.columns, order), [p.rows, p.columns, order]);
  const first = Math.max(0, Math.min(from, rows.length - 1) - more);
  const last = Math.min(rows.length, from + Math.ceil(height / rowHeight) + more);
  useEffect(() => {
    const at = frame.current;
    if (at && at.scrollTop > rows.length * rowHeight) at.scrollTop = 0;
  }, [rows.length]);
  const scroll = () => setFrom(Math.floor((frame.current?.scrollTop ?? 0) / rowHeight));
  return (
    <div class="table" ref={frame} onScroll={scroll} tabIndex={0} role="region" aria-label={p.label}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {p.columns.map((c) => (
              <Head key={c.name} column={c} order={order} set={setOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Gap rows={first} />}
          {rows.slice(first, last).map((row, i) => {
            const key = p.keyOf(row);
            const chosen = key === p.selected;
            return (
              <tr key={key} aria-rowindex={first + i + 2} class={`${chosen ? "chosen " : ""}${p.tone?.(row) ?? ""}`} aria-current={chosen ? "true" : undefined}>
                {p.columns.map((c, n) => (
                  <td key={c.name} class={c.kind}>
                    {n === 0 && p.href ? (
                      <a class="row" href={p.href(row)}>
                        {c.cell(row)}
                      </a>
                    ) : (
                      c.cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
          {last < rows.length && <Gap rows={rows.length - last} />}
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">{p.empty ?? "Nothing here."}</p>}
    </div>
  );
}

function Gap({ rows }: { rows: number }) {
  return (
    <tr aria-hidden="true" class="gap">
      <td style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}

function Head<T>({ column: c, order, set }: { column: Column<T>; order: string; set(order: string): void }) {
  const descending = order === `-${c.name}`;
  const sorted = descending || order === c.name;
  return (
    <th scope="col" class={c.kind} style={c.width ? { width: c.width } : undefined} aria-sort={sorted ? (descending ? "descending" : "ascending") : undefined}>
      {c.sort ? (
        <button type="button" onClick={() => set(order === c.name ? `-${c.name}` : c.name)}>
          {c.title}
          <span class="sort" aria-hidden="true">
            {sorted ? (descending ? "↓" : "↑") : ""}
          </span>
        </button>
      ) : (
        c.title
      )}
    </th>
  );
}

function sort<T>(rows: readonly T[], columns: Column<T>[], order: string): readonly T[] {
  const by = columns.find((c) => c.name === order.replace(/^-/, ""))?.sort;
  if (!by) return rows;
  const sign = order.startsWith("-") ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: by(row) }));
  keyed.sort((a, b) => sign * compare(a.key, b.key));
  return keyed.map((k) => k.row);
}

const collator = new Intl.Collator("en", { numeric: true });

export function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}
