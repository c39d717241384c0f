package contract

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
)

func testWatchOrder(t *testing.T, e *env) {
	w := e.store.Watch(e.ctx, e.root)
	if b := e.next(t, w); !b.Snapshot || len(b.Events) != 0 || b.Revision < 1 {
		t.Fatalf("first batch of an empty prefix: %+v", b)
	}
	var (
		got  []objdb.Event
		last int64
	)
	// take takes batches until they have reached a revision.
	take := func(rev int64) {
		for last < rev {
			b := e.next(t, w)
			if b.Snapshot {
				t.Fatalf("a snapshot without need: %+v", b)
			}
			got = append(got, b.Events...)
			last = b.Revision
		}
	}
	// write commits, and gives a backend that needs it the time to deliver that.
	write := func(ops ...objdb.Op) int64 {
		rev := e.commit(t, objdb.Txn{Then: ops})
		if e.newestOnly {
			take(rev)
		}
		return rev
	}
	r1 := write(objdb.Put(e.key("a"), []byte("1")))
	r2 := write(objdb.Put(e.key("a"), []byte("2")), objdb.Put(e.key("b"), []byte("2")))
	e.commit(t, objdb.Txn{Then: []objdb.Op{objdb.Put("/contract/elsewhere", nil)}})
	r3 := write(objdb.DeletePrefix(e.root))
	r4 := write(objdb.Put(e.key("a"), []byte("3")))
	take(r4)
	put := func(name, value string, created, modified int64) objdb.Event {
		return objdb.Event{KV: objdb.KV{Key: e.key(name), Value: []byte(value), CreateRevision: created, ModRevision: modified}}
	}
	gone := func(name string) objdb.Event {
		return objdb.Event{KV: objdb.KV{Key: e.key(name), ModRevision: r3}, Deleted: true}
	}
	want := []objdb.Event{
		put("a", "1", r1, r1), put("a", "2", r1, r2), put("b", "2", r2, r2), gone("a"), gone("b"), put("a", "3", r4, r4),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func testWatchSnapshot(t *testing.T, e *env) {
	e.put(t, "b", "1")
	e.put(t, "a", "1")
	rev := e.put(t, "a", "2")
	w := e.store.Watch(e.ctx, e.root)
	b := e.next(t, w)
	var r Replica
	if err := r.Apply(b); err != nil {
		t.Fatal(err)
	}
	if b.Revision < rev || len(b.Events) != 2 {
		t.Errorf("snapshot at %d after a write at %d: %+v", b.Revision, rev, b)
	}
	e.until(t, w, &r, map[string]string{"a": "2", "b": "1"})
	e.put(t, "c", "1")
	e.until(t, w, &r, map[string]string{"a": "2", "b": "1", "c": "1"})
	if r.Snapshots != 1 {
		t.Errorf("%d snapshots, want 1", r.Snapshots)
	}
}

// testWatchReplica: watches that begin while others write end with what there is, and
// see every transaction whole. Each transaction writes one value to three keys.
func testWatchReplica(t *testing.T, e *env) {
	const writers, watchers, each = 3, 4, 40
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range writers {
		s, rnd := e.open(t), rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			for n := range each {
				set := rnd.IntN(4)
				var ops []objdb.Op
				for k := range 3 {
					key := e.key(fmt.Sprintf("%d/%d", set, k))
					if n%7 == 6 {
						ops = append(ops, objdb.Delete(key))
					} else {
						ops = append(ops, objdb.Put(key, fmt.Appendf(nil, "%d-%d", i, n)))
					}
				}
				if _, err := s.Commit(e.ctx, objdb.Txn{Then: ops}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()

	var checks sync.WaitGroup
	for range watchers {
		s := e.open(t)
		checks.Go(func() {
			w := s.Watch(e.ctx, e.root)
			var r Replica
			var final int64 // the revision to reach, once the writers are done
			finished := done
			for final == 0 || r.Revision() < final {
				select {
				case <-finished:
					finished = nil
					kvs, _, err := s.List(e.ctx, e.root)
					if err != nil {
						t.Error(err)
						return
					}
					final = 1
					for _, kv := range kvs {
						final = max(final, kv.ModRevision)
					}
				case b, ok := <-w:
					if !ok {
						t.Error("the watch ended")
						return
					}
					if err := r.Apply(b); err != nil {
						t.Error(err)
						return
					}
					if err := wholeSets(r.Content(e.root)); err != nil {
						t.Errorf("at revision %d: %v", b.Revision, err)
						return
					}
				}
			}
			// Deletions after the last put may still be on their way.
			e.until(t, w, &r, e.content(t))
		})
	}
	checks.Wait()
	<-done
}

func wholeSets(content map[string]string) error {
	for set := range 4 {
		for k := range 3 {
			if a, b := content[fmt.Sprintf("%d/0", set)], content[fmt.Sprintf("%d/%d", set, k)]; a != b {
				return fmt.Errorf("set %d is half of one transaction, half of another: %v", set, content)
			}
		}
	}
	return nil
}

func testWatchEnds(t *testing.T, e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	idle, busy := e.store.Watch(ctx, e.root), e.store.Watch(ctx, e.root)
	e.next(t, idle)
	e.put(t, "a", "1") // busy has not even taken its snapshot
	cancel()
	other := e.open(t)
	closed := other.Watch(e.ctx, e.root)
	e.next(t, closed)
	if err := other.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, w := range []<-chan objdb.Batch{idle, busy, closed} {
		for open := true; open; {
			select {
			case _, open = <-w:
			case <-e.ctx.Done():
				t.Fatal("a watch whose context has ended is not closed")
			}
		}
	}
	if _, ok := <-e.store.Watch(ctx, e.root); ok {
		t.Error("a watch that begins after its context has ended delivers something")
	}
}
