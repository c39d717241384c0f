package consul

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

const (
	// blockFor is how long the servers hold a query while nothing changes. They answer up to
	// a sixteenth later.
	blockFor    = time.Minute
	blockWithin = blockFor + blockFor/16 + 5*time.Second

	// rest is how long a watch rests after a list, per key of it: each change makes the
	// servers send the whole list, so that changes of a large one are better taken together.
	rest    = 10 * time.Microsecond
	maxRest = 500 * time.Millisecond
)

// Watch implements objdb.Store.
func (s *Store) Watch(ctx context.Context, prefix string) <-chan objdb.Batch {
	w := &watch{s: s, out: make(chan objdb.Batch)}
	name, err := wire(prefix)
	ctx, over := s.life.Bound(ctx)
	if !s.life.Go(func() {
		defer close(w.out)
		defer over()
		if err != nil {
			<-ctx.Done() // nothing can be there
			return
		}
		w.prefix = name
		w.run(ctx)
	}) {
		over()
		close(w.out)
	}
	return w.out
}

// watch is one Watch: lists, one after the other, and what differs between them.
type watch struct {
	s      *Store
	prefix string // in Consul's form
	out    chan objdb.Batch
	replica
}

func (w *watch) run(ctx context.Context) {
	defer w.s.refusals.Note(w, nil)
	var (
		b    = remote.NewBackoff()
		wait uint64 // the index the next list has to be newer than; 0: any
	)
	for ctx.Err() == nil {
		within := answerWithin
		if wait > 0 {
			within = blockWithin
		}
		var l listing
		t := w.s.try(ctx, within, func(ctx context.Context, c *api.Client) (err error) {
			l, err = list(c, w.prefix, (&api.QueryOptions{RequireConsistent: true, WaitIndex: wait, WaitTime: blockFor}).WithContext(ctx))
			return err
		})
		if t.err == nil || kind(t.err) == errs.Invalid {
			w.s.refusals.Note(w, w.s.wrap(t.err, "watch /"+w.prefix))
		}
		if t.err != nil {
			// The store may come back with less than it had: do not wait for more then.
			wait = 0
			b.Wait(ctx) // also after a refusal (permissions), which may be lifted later
			continue
		}
		b.Reset()
		wait = uint64(l.index)
		batch := w.advance(l)
		if batch.Revision == 0 {
			continue
		}
		select {
		case w.out <- batch:
		case <-ctx.Done():
			return
		}
		retry.Pause(ctx, min(time.Duration(len(l.pairs))*rest, maxRest))
	}
}

// replica is what a watch has delivered, without the values.
type replica struct {
	known map[string]version // nil: nothing has been delivered
	index int64              // of the last list
	rev   int64              // of the last batch
}

// version distinguishes two states of a key.
type version struct{ create, modify uint64 }

// advance makes the replica equal to a list and returns the batch that does the same to
// the consumer's: the zero Batch if nothing has changed.
func (r *replica) advance(l listing) objdb.Batch {
	batch := objdb.Batch{Revision: l.index}
	if r.known != nil && r.continues(l) {
		batch.Events = r.changes(l)
		if len(batch.Events) == 0 {
			// The index may have gone back: that of a prefix is forgotten some time after its
			// newest change was a deletion.
			r.index = l.index
			return objdb.Batch{}
		}
	}
	if r.known == nil || len(batch.Events) == 0 || batch.Revision <= r.rev {
		batch.Snapshot = true
		batch.Events = make([]objdb.Event, len(l.pairs))
		for i, p := range l.pairs {
			batch.Events[i] = objdb.Event{KV: toKV(p)}
		}
	}
	r.known = make(map[string]version, len(l.pairs))
	for _, p := range l.pairs {
		r.known[p.Key] = version{create: p.CreateIndex, modify: p.ModifyIndex}
	}
	r.index, r.rev = l.index, batch.Revision
	return batch
}

// continues reports whether a list can have come of the one before: what is older than
// that must have been in it. If not, the store was restored, or was reset.
func (r *replica) continues(l listing) bool {
	for _, p := range l.pairs {
		if p.ModifyIndex <= uint64(r.index) && r.known[p.Key] != (version{create: p.CreateIndex, modify: p.ModifyIndex}) {
			return false
		}
	}
	return true
}

// changes lists what differs, in the order of revisions. Nobody knows when exactly a
// key was deleted: the revision is that of the list, or the one before the key was
// made again.
func (r *replica) changes(l listing) []objdb.Event {
	var events []objdb.Event
	gone := func(key string, rev int64) {
		events = append(events, objdb.Event{KV: objdb.KV{Key: "/" + key, ModRevision: rev}, Deleted: true})
	}
	kept := 0
	for _, p := range l.pairs {
		old, there := r.known[p.Key]
		if there {
			kept++
		}
		if there && old.modify == p.ModifyIndex {
			continue
		}
		if there && old.create != p.CreateIndex && int64(p.CreateIndex)-1 > r.rev {
			gone(p.Key, int64(p.CreateIndex)-1)
		}
		events = append(events, objdb.Event{KV: toKV(p)})
	}
	if kept < len(r.known) {
		there := make(map[string]struct{}, len(l.pairs))
		for _, p := range l.pairs {
			there[p.Key] = struct{}{}
		}
		for key := range r.known {
			if _, ok := there[key]; !ok {
				gone(key, l.index)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b objdb.Event) int {
		return cmp.Or(cmp.Compare(a.KV.ModRevision, b.KV.ModRevision), cmp.Compare(a.KV.Key, b.KV.Key))
	})
	return events
}
