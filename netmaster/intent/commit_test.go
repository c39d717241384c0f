package intent

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// writes reports whether a transaction touches a key.
func writes(txn objdb.Txn, key string) bool {
	for _, op := range txn.Then {
		if op.Key == key {
			return true
		}
	}
	return false
}

// TestFormerLeader checks that writes of a former leader fail.
func TestFormerLeader(t *testing.T) {
	store := memory.New()
	old, _, stopOld := lead(t, store)
	defer stopOld()
	old.mustNetwork(t, "n", "10.1.1.0/24")
	now, _, stopNow := lead(t, store)
	defer stopNow()

	_, err := old.CreateEndpoint(t.Context(), endpoint("n", "", "c", ""))
	if !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "not the leader any more") {
		t.Errorf("the former leader said %v", err)
	}
	<-old.Done()
	if _, err := old.tenants().Put(t.Context(), "t", []byte(`{"tenantName":"t"}`)); !errs.Is(err, errs.Unavailable) {
		t.Errorf("the former leader said %v", err)
	}
	if got := claims(t, store, "n.default"); len(got) != 0 {
		t.Errorf("claims of a former leader: %v", got)
	}
	if _, err := now.CreateEndpoint(t.Context(), endpoint("n", "", "c", "")); err != nil {
		t.Errorf("the leader said %v", err)
	}
	now.checkConsistent(t)
}

// TestUnansweredCommit checks that a write without reply is neither lost nor done twice.
func TestUnansweredCommit(t *testing.T) {
	away := errs.New(errs.Unavailable, "the store is unavailable")
	for name, fault := range map[string]memory.Fault{"not applied": {Before: away}, "applied": {After: away}} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			e, _, stop := lead(t, store)
			defer stop()
			e.mustNetwork(t, "n", "10.1.1.0/24")
			var tries atomic.Int32
			store.OnCommit(func(objdb.Txn) memory.Fault {
				if tries.Add(1) <= 2 {
					return fault
				}
				return memory.Fault{}
			})
			ch, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", ""))
			if err != nil {
				t.Fatal(err)
			}
			kv, err := store.Get(t.Context(), state.EndpointRoot+ch.Endpoint.ID)
			if err != nil || kv.ModRevision != ch.Revision {
				t.Errorf("the record has revision %d, the answer said %d, %v", kv.ModRevision, ch.Revision, err)
			}
			store.OnCommit(nil)
			e.checkConsistent(t)
		})
	}
}

// TestTermEndsUnanswered checks the error when the term ends before the outcome of a write
// is known: that nobody knows. The next leader does.
func TestTermEndsUnanswered(t *testing.T) {
	store := memory.New()
	e, l, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	store.OnCommit(func(objdb.Txn) memory.Fault {
		l.Lose()
		return memory.Fault{After: errs.New(errs.Unavailable, "the store is unavailable")}
	})
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", "")); !errs.Is(err, errs.Unavailable) {
		t.Errorf("said %v", err)
	}
	<-e.Done()
	store.OnCommit(nil)
	next, _, stopNext := lead(t, store)
	defer stopNext()
	next.checkConsistent(t)
	if ch, err := next.CreateEndpoint(t.Context(), endpoint("n", "", "c", "")); err != nil || ch.Endpoint.IPAddress != "10.1.1.1" {
		t.Errorf("repeated: %v, %v", ch.Endpoint.IPAddress, err)
	}
}

// TestDeadline checks that a caller waits no longer than its deadline.
func TestDeadline(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	store.OnCommit(func(objdb.Txn) memory.Fault {
		cancel()
		<-release
		return memory.Fault{}
	})
	_, err := e.CreateEndpoint(ctx, endpoint("n", "", "c", ""))
	if !errs.Is(err, errs.Timeout) || !strings.Contains(err.Error(), "may still happen") {
		t.Errorf("said %v", err)
	}
	close(release)
	store.OnCommit(nil)
	e.checkConsistent(t)
}

// hold keeps the writer busy from now on until n requests wait.
func (e *Engine) hold(ctx context.Context, g *errgroup.Group, n int) {
	holding := make(chan struct{})
	g.Go(func() error {
		_, err := submit[struct{}](ctx, e.writer, true, func(*tx) (reply, error) {
			close(holding)
			for len(e.writer.queue) < n && ctx.Err() == nil {
				runtime.Gosched()
			}
			return func(int64) any { return struct{}{} }, nil
		})
		return err
	})
	<-holding
}

// TestGroupCommit checks that requests that wait together share a transaction, and that one
// which the store rejects does not make the others fail.
func TestGroupCommit(t *testing.T) {
	const clients = 20
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	var commits atomic.Int32
	poison := state.EndpointRoot + "n.default-c7"
	store.OnCommit(func(txn objdb.Txn) memory.Fault {
		commits.Add(1)
		if writes(txn, poison) {
			return memory.Fault{Before: errs.New(errs.Invalid, "the store does not like c7")}
		}
		return memory.Fault{}
	})
	g, ctx := errgroup.WithContext(t.Context())
	e.hold(ctx, g, clients)
	var mu sync.Mutex
	addrs := map[string]string{}
	for i := range clients {
		g.Go(func() error {
			ch, err := e.CreateEndpoint(ctx, endpoint("n", "", fmt.Sprint("c", i), ""))
			if (err != nil) != (i == 7) {
				return fmt.Errorf("c%d: %w", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if other := addrs[ch.Endpoint.IPAddress]; other != "" {
				return fmt.Errorf("c%d and %s have %s", i, other, ch.Endpoint.IPAddress)
			}
			addrs[ch.Endpoint.IPAddress] = fmt.Sprint("c", i)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// The shared one that is rejected, and its members one by one.
	if n := commits.Load(); n != 1+clients {
		t.Errorf("%d transactions for %d requests", n, clients)
	}
	store.OnCommit(nil)
	e.checkConsistent(t)
}

// TestMaxOps checks that requests which do not fit into one transaction are spread
// over several.
func TestMaxOps(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.0.0/16")
	clients := store.MaxOps()
	var commits atomic.Int32
	store.OnCommit(func(txn objdb.Txn) memory.Fault {
		commits.Add(1)
		if len(txn.Then) > store.MaxOps() || len(txn.If) > store.MaxOps() {
			t.Errorf("a transaction of %d operations and %d comparisons", len(txn.Then), len(txn.If))
		}
		return memory.Fault{}
	})
	g, ctx := errgroup.WithContext(t.Context())
	e.hold(ctx, g, clients)
	for i := range clients {
		g.Go(func() error {
			_, err := e.CreateEndpoint(ctx, endpoint("n", "", fmt.Sprint("c", i), ""))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := commits.Load(); n < 2 || n > 4 {
		t.Errorf("%d transactions for %d endpoints", n, clients)
	}
	e.checkConsistent(t)
}

// TestStoreChangedByHand checks that a leader that finds unexpected content in the store
// starts over instead of failing forever.
func TestStoreChangedByHand(t *testing.T) {
	claim := objdb.Put(state.IPAMRoot+"n.default/10.1.1.1", []byte(`{"owner":"reserved/somebody"}`))
	for name, op := range map[string]objdb.Op{"a claim": claim, "the commit mark": objdb.Put(markKey, []byte("7/7"))} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			e, l, stop := lead(t, store)
			defer stop()
			e.mustNetwork(t, "n", "10.1.1.0/24")
			if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{op}}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", "")); !errs.Is(err, errs.Unavailable) {
				t.Errorf("said %v", err)
			}
			<-e.Done()
			<-l.Lost()
			next, _, stopNext := lead(t, store)
			defer stopNext()
			if _, err := next.CreateEndpoint(t.Context(), endpoint("n", "", "c", "")); err != nil {
				t.Error(err)
			}
			next.checkConsistent(t)
		})
	}
}

// TestTakeOver checks that an address passes from its reservation to its endpoint without
// ever being free.
func TestTakeOver(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	defer stop()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	got, err := e.AllocAddress(t.Context(), masterapi.AllocAddressRequest{NetworkID: "n.default"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"10.1.1.1": "reserved/n.default"}, claims(t, store, "n.default")); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	addr, _, _ := strings.Cut(got.IPv4Address, "/")
	if _, err := e.CreateEndpoint(t.Context(), endpoint("n", "", "c", addr)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"10.1.1.1": "endpoint/n.default-c"}, claims(t, store, "n.default")); diff != "" {
		t.Errorf("taken over (-want +got):\n%s", diff)
	}
	e.checkConsistent(t)
}

// TestPanic checks that a panic in a plan fails only that request.
func TestPanic(t *testing.T) {
	e, _, stop := lead(t, memory.New())
	defer stop()
	_, err := submit[int](t.Context(), e.writer, false, func(x *tx) (reply, error) {
		x.tenants.put(x, "t", nil)
		panic("a fault")
	})
	if !errs.Is(err, errs.Internal) {
		t.Errorf("said %v", err)
	}
	e.checkConsistent(t)
}
