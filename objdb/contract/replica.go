package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contiv/netplugin/objdb"
)

// Replica is what a consumer of Watch knows, and the checks a batch must pass.
type Replica struct {
	kvs       map[string]objdb.KV
	rev       int64
	Snapshots int // how many have been applied
}

// Apply applies a batch. The error says how it breaks the contract.
func (r *Replica) Apply(b objdb.Batch) error {
	if r.kvs == nil && !b.Snapshot {
		return fmt.Errorf("the first batch is no snapshot: %+v", b)
	}
	if b.Snapshot {
		r.Snapshots++
		r.kvs = map[string]objdb.KV{}
		if !slices.IsSortedFunc(b.Events, func(a, b objdb.Event) int { return strings.Compare(a.KV.Key, b.KV.Key) }) {
			return fmt.Errorf("snapshot at revision %d is not sorted by key", b.Revision)
		}
	} else if b.Revision <= r.rev {
		return fmt.Errorf("batch of revision %d after revision %d", b.Revision, r.rev)
	}
	last := int64(0)
	for _, ev := range b.Events {
		rev := ev.KV.ModRevision
		switch {
		case rev > b.Revision:
			return fmt.Errorf("event of revision %d in batch of revision %d", rev, b.Revision)
		case b.Snapshot && ev.Deleted:
			return fmt.Errorf("deletion of %s in a snapshot", ev.KV.Key)
		case !b.Snapshot && rev <= r.rev:
			return fmt.Errorf("event of revision %d after revision %d: not whole, or twice", rev, r.rev)
		case !b.Snapshot && rev < last:
			return fmt.Errorf("event of revision %d after one of revision %d", rev, last)
		case ev.Deleted && ev.KV.Value != nil:
			return fmt.Errorf("deletion of %s carries a value", ev.KV.Key)
		}
		last = rev
		if ev.Deleted {
			delete(r.kvs, ev.KV.Key)
		} else {
			r.kvs[ev.KV.Key] = ev.KV
		}
	}
	r.rev = b.Revision
	return nil
}

// Content returns values by key, without the prefix root.
func (r *Replica) Content(root string) map[string]string {
	out := map[string]string{}
	for key, kv := range r.kvs {
		out[strings.TrimPrefix(key, root)] = string(kv.Value)
	}
	return out
}

// Revision is that of the last batch.
func (r *Replica) Revision() int64 { return r.rev }
