// Curves between boxes of a drawing.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export interface Wire {
  from: string;
  to: string;
  denied: boolean;
  count: number;
  open: number;
}

interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function Wires({ area, wires, chosen }: { area: RefObject<HTMLDivElement>; wires: Wire[]; chosen: string }) {
  const [places, setPlaces] = useState(new Map<string, Place>());
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const at = area.current;
    if (!at) return;
    const measure = () => {
      const base = at.getBoundingClientRect();
      setSize({ width: base.width, height: base.height });
      const found = new Map<string, Place>();
      for (const box of at.querySelectorAll<HTMLElement>("[data-box]")) {
        const b = box.getBoundingClientRect();
        found.set(box.dataset["box"] ?? "", { x: b.x - base.x, y: b.y - base.y, width: b.width, height: b.height });
      }
      setPlaces(found);
    };
    const watch = new ResizeObserver(measure);
    watch.observe(at);
    for (const inside of at.querySelectorAll(".network")) watch.observe(inside);
    measure();
    return () => watch.disconnect();
  }, [area, wires.length]);
  return (
    <svg class="wires" width={size.width} height={size.height} aria-hidden="true">
      {wires.map((w) => {
        const [a, b] = [places.get(w.from), places.get(w.to)];
        if (!a || !b) return null;
        const off = chosen !== "" && w.from !== chosen && w.to !== chosen;
        return (
          <path
            key={`${w.from} ${w.to} ${w.denied}`} d={curve(a, b, w.denied)} class={`${w.denied ? "denied" : "allowed"} ${w.open ? "open" : ""} ${off ? "off" : ""}`}
            stroke-width={Math.min(6, 1.5 + Math.log10(w.count))} data-wire={`${w.from} ${w.to}`}
          />
        );
      })}
    </svg>
  );
}

// From the border of one box to that of the other; a loop for one with itself. Denied ones go
// beside the allowed ones.
function curve(a: Place, b: Place, denied: boolean): string {
  const shift = denied ? 12 : -4;
  const [ax, ay] = [a.x + a.width / 2 + shift, a.y + a.height / 2];
  const [bx, by] = [b.x + b.width / 2 + shift, b.y + b.height / 2];
  if (a === b) {
    const top = a.y + 2;
    return `M ${ax - 16} ${top} C ${ax - 26} ${top - 30}, ${ax + 26} ${top - 30}, ${ax + 16} ${top}`;
  }
  if (Math.abs(ay - by) < a.height) {
    const [y, left] = [a.y + a.height, ax < bx];
    const depth = 22 + Math.min(60, Math.abs(ax - bx) / 8) + shift / 2;
    return `M ${ax + (left ? 12 : -12)} ${y} C ${ax} ${y + depth}, ${bx} ${y + depth}, ${bx + (left ? -12 : 12)} ${b.y + b.height}`;
  }
  const down = by > ay;
  const [y1, y2] = [down ? a.y + a.height : a.y, down ? b.y : b.y + b.height];
  const mid = (y1 + y2) / 2;
  return `M ${ax} ${y1} C ${ax} ${mid}, ${bx} ${mid}, ${bx} ${y2}`;
}
