// Package contract holds every implementation of objdb.Store to its contract. It is a
// test suite in a package of its own so that each backend runs the same one:
//
//	func TestContract(t *testing.T) {
//		server := start(t)
//		contract.Run(t, func(t *testing.T) objdb.Store { return server.connect(t) })
//	}
package contract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// patience is how long a test waits for what must happen before it fails.
const patience = 30 * time.Second

// Open returns one more client of the store under test. Every call returns another
// client of the same store. The suite closes none of them unless closing is the point;
// open registers a clean-up for that.
type Open func(t *testing.T) objdb.Store

// Option says what a backend cannot do, and its documentation admits.
type Option func(*env)

// MinLease says that leases live that long at least, and end up to that much too late.
func MinLease(ttl time.Duration) Option { return func(e *env) { e.minLease = ttl } }

// NewestOnly says that a watch may leave out states that it has not delivered yet when
// there is a newer one.
func NewestOnly() Option { return func(e *env) { e.newestOnly = true } }

// Run runs the suite.
func Run(t *testing.T, open Open, options ...Option) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, *env)
	}{
		{"Get", testGet},
		{"List", testList},
		{"Compare", testCompare},
		{"Operations", testOperations},
		{"AllOrNothing", testAllOrNothing},
		{"Invalid", testInvalid},
		{"Limits", testLimits},
		{"ConcurrentCompareAndSet", testConcurrentCAS},
		{"Model", testModel},
		{"Context", testContext},
		{"WatchOrder", testWatchOrder},
		{"WatchSnapshot", testWatchSnapshot},
		{"WatchReplica", testWatchReplica},
		{"WatchEnds", testWatchEnds},
		{"LeaseRelease", testLeaseRelease},
		{"LeaseKeptAlive", testLeaseKeptAlive},
		{"LeaseOfTheDead", testLeaseOfTheDead},
		{"LeaseOverwritten", testLeaseOverwritten},
		{"Health", testHealth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &env{open: open, store: open(t), root: fmt.Sprintf("/contract/%s-%d/", tt.name, time.Now().UnixNano()), minLease: time.Second}
			for _, o := range options {
				o(e)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience+4*e.minLease)
			defer cancel()
			e.ctx = ctx
			tt.test(t, e)
		})
	}
}

// env is what one test works with: a store, and a corner of it to itself.
type env struct {
	ctx   context.Context
	open  Open
	store objdb.Store
	root  string

	minLease   time.Duration
	newestOnly bool
}

func (e *env) key(name string) string { return e.root + name }

func (e *env) commit(t *testing.T, txn objdb.Txn) int64 {
	t.Helper()
	rev, err := e.store.Commit(e.ctx, txn)
	if err != nil {
		t.Fatalf("Commit(%v): %v", txn, err)
	}
	return rev
}

func (e *env) put(t *testing.T, name, value string) int64 {
	t.Helper()
	return e.commit(t, objdb.Txn{Then: []objdb.Op{objdb.Put(e.key(name), []byte(value))}})
}

func (e *env) get(t *testing.T, name string) objdb.KV {
	t.Helper()
	kv, err := e.store.Get(e.ctx, e.key(name))
	if err != nil {
		t.Fatalf("Get(%s): %v", name, err)
	}
	return kv
}

// content lists the test's corner as name → value.
func (e *env) content(t *testing.T) map[string]string {
	t.Helper()
	kvs, _, err := e.store.List(e.ctx, e.root)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	out := map[string]string{}
	for _, kv := range kvs {
		out[kv.Key[len(e.root):]] = string(kv.Value)
	}
	return out
}

func (e *env) wantContent(t *testing.T, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, e.content(t)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func wantKind(t *testing.T, what string, err error, want errs.Kind) {
	t.Helper()
	if !errs.Is(err, want) {
		t.Errorf("%s: error %v of kind %s, want kind %s", what, err, errs.KindOf(err), want)
	}
}

// next returns the next batch of a watch.
func (e *env) next(t *testing.T, w <-chan objdb.Batch) objdb.Batch {
	t.Helper()
	select {
	case b, ok := <-w:
		if !ok {
			t.Fatal("the watch ended")
		}
		return b
	case <-e.ctx.Done():
		t.Fatal("no batch arrived")
	}
	return objdb.Batch{}
}

// until applies batches to replica until it equals want.
func (e *env) until(t *testing.T, w <-chan objdb.Batch, replica *Replica, want map[string]string) {
	t.Helper()
	for {
		diff := cmp.Diff(want, replica.Content(e.root))
		if diff == "" {
			return
		}
		select {
		case b, ok := <-w:
			if !ok {
				t.Fatalf("the watch ended; (-want +got):\n%s", diff)
			}
			if err := replica.Apply(b); err != nil {
				t.Fatal(err)
			}
		case <-e.ctx.Done():
			t.Fatalf("the watch did not get there (-want +got):\n%s", diff)
		}
	}
}
