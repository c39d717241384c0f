// Deleting an object, after a look at what names it.
import { useState } from "preact/hooks";
import { objectPath, send, words } from "../lib/api";
import { referrers } from "../lib/model";
import { decides } from "../lib/preview";
import { go } from "../lib/route";
import { kinds, type Kind } from "../lib/schema";
import { Message, Named } from "../parts/bits";
import { PreviewOf } from "../parts/preview";

export function Remove({ kind, id, back, cancel }: { kind: Kind; id: string; back: string; cancel(): void }) {
  const [failure, setFailure] = useState("");
  const naming = referrers(kind.type, id);
  const remove = async () => {
    try {
      await send("DELETE", objectPath(kind.collection, id));
      go(back);
    } catch (e) {
      setFailure(words(e));
    }
  };
  return (
    <div class="review" role="group" aria-label={`Delete ${id}`}>
      <p>
        Delete {kind.title.toLowerCase()} <b>{id}</b>? This cannot be undone.
      </p>
      {naming.length > 0 && (
        <Message tone="warn">
          Used by{" "}
          {naming.slice(0, 10).map((r, i) => (
            <span key={r.kind + r.key}>
              {i > 0 && ", "}
              {kinds.value.get(r.kind)?.title.toLowerCase()} <Named kind={r.kind} id={r.key} />
            </span>
          ))}
          {naming.length > 10 && ` and ${naming.length - 10} more`}
        </Message>
      )}
      {decides.has(kind.type) && <PreviewOf changes={[{ verb: "delete", kind: kind.collection, key: id }]} />}
      {failure && <Message tone="bad">{failure}</Message>}
      <div class="actions">
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete
        </button>
        <button type="button" onClick={cancel}>
          Keep it
        </button>
      </div>
    </div>
  );
}
