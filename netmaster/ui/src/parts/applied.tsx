// How many hosts have what was saved last.
import { useCell } from "../lib/cell";
import { applied } from "../lib/cluster";
import { Message } from "./bits";

export function AppliedNow() {
  const a = useCell(applied);
  if (!a.data) return null;
  const missing = a.data.missing ?? [];
  return (
    <div class="applied">
      <Message tone={missing.length ? "warn" : "good"}>
        Saved. Applied on {a.data.hosts - missing.length} of {a.data.hosts} hosts{missing.length > 0 && `; not yet: ${missing.slice(0, 5).map((m) => m.host).join(", ")}`}.
      </Message>
    </div>
  );
}
