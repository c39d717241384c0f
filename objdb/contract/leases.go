package contract

import (
	"errors"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

func (e *env) grant(t *testing.T, s objdb.Store, ttl time.Duration) objdb.Lease {
	t.Helper()
	l, err := s.Grant(e.ctx, ttl)
	if err != nil {
		t.Fatalf("Grant: %v", err)
	}
	if l.ID() == 0 {
		t.Fatal("a lease without id")
	}
	return l
}

func (e *env) putLeased(t *testing.T, l objdb.Lease, names ...string) {
	t.Helper()
	var txn objdb.Txn
	for _, n := range names {
		txn.Then = append(txn.Then, objdb.PutLeased(e.key(n), []byte("leased"), l.ID()))
	}
	e.commit(t, txn)
}

func (e *env) wantDone(t *testing.T, l objdb.Lease) {
	t.Helper()
	select {
	case <-l.Done():
	case <-e.ctx.Done():
		t.Error("the lease has ended and is not Done")
	}
}

func testLeaseRelease(t *testing.T, e *env) {
	l := e.grant(t, e.store, time.Minute)
	e.putLeased(t, l, "a", "b")
	e.put(t, "c", "mine")
	w := e.store.Watch(e.ctx, e.root)
	var r Replica
	e.until(t, w, &r, map[string]string{"a": "leased", "b": "leased", "c": "mine"})
	select {
	case <-l.Done():
		t.Error("Done before its time")
	default:
	}
	if err := l.Release(e.ctx); err != nil {
		t.Fatalf("Release: %v", err)
	}
	e.wantDone(t, l)
	e.wantContent(t, map[string]string{"c": "mine"})
	e.until(t, w, &r, map[string]string{"c": "mine"})

	_, err := e.store.Commit(e.ctx, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(e.key("d"), nil, l.ID())}})
	wantKind(t, "put under a lease that has ended", err, errs.Unavailable)
	if !errors.Is(err, objdb.ErrLeaseEnded) {
		t.Errorf("error %v does not wrap ErrLeaseEnded", err)
	}
	if err := l.Release(e.ctx); err != nil {
		t.Errorf("second Release: %v", err)
	}
}

// testLeaseKeptAlive: a lease whose owner lives outlasts its TTL.
func testLeaseKeptAlive(t *testing.T, e *env) {
	l := e.grant(t, e.store, e.minLease)
	e.putLeased(t, l, "a")
	select {
	case <-l.Done():
		t.Fatal("a lease that is kept alive is Done")
	case <-time.After(2*e.minLease + 1500*time.Millisecond):
	}
	e.wantContent(t, map[string]string{"a": "leased"})
}

// testLeaseOfTheDead: when the owner is gone, its keys go.
func testLeaseOfTheDead(t *testing.T, e *env) {
	w := e.store.Watch(e.ctx, e.root)
	owner := e.open(t)
	l := e.grant(t, owner, e.minLease)
	e.putLeased(t, l, "a", "b")
	var r Replica
	e.until(t, w, &r, map[string]string{"a": "leased", "b": "leased"})
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	e.wantDone(t, l)
	e.until(t, w, &r, map[string]string{})
	e.wantContent(t, map[string]string{})
}

// testLeaseOverwritten: a put without lease makes a key permanent.
func testLeaseOverwritten(t *testing.T, e *env) {
	first, second := e.grant(t, e.store, time.Minute), e.grant(t, e.store, time.Minute)
	e.putLeased(t, first, "a", "b", "c")
	e.put(t, "b", "permanent")
	e.putLeased(t, second, "c")
	if err := first.Release(e.ctx); err != nil {
		t.Fatal(err)
	}
	e.wantContent(t, map[string]string{"b": "permanent", "c": "leased"})
	if err := second.Release(e.ctx); err != nil {
		t.Fatal(err)
	}
	e.wantContent(t, map[string]string{"b": "permanent"})
}
