package objdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// Campaign waits until it gets the lock named key, and holds it until the Leadership is
// lost or resigned. value is what others read there: the holder's address. ttl is how long
// the lock outlives a holder that ends without resigning.
//
// The lock is a key under a lease, created only if absent. A term is identified by the
// key's create revision, not by value: a holder that restarts begins a new term, and the
// fence of its old term no longer holds.
//
// The error is that of ctx, or Invalid if the store rejects the request.
func Campaign(ctx context.Context, store Store, key, value string, ttl time.Duration) (Leadership, error) {
	again := retry.New(200*time.Millisecond, time.Second)
	for {
		if err := waitAbsent(ctx, store, key); err != nil {
			return nil, fmt.Errorf("campaign for %s: %w", key, err)
		}
		t, err := attempt(ctx, store, key, value, ttl)
		if err == nil {
			return t, nil
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("campaign for %s: %w", key, ctx.Err())
		case errs.Is(err, errs.Invalid):
			return nil, fmt.Errorf("campaign for %s: %w", key, err)
		case errors.Is(err, ErrCompareFailed):
			again.Reset()
			continue // somebody was faster; wait for the end of that term
		}
		// The store has failed, and waitAbsent may not wait for it.
		again.Wait(ctx)
	}
}

// BreakLock removes a lock with this value. A process calls it once when it starts, after
// making sure that no other process uses the value (it listens on that address): then the
// lock is left from its previous run, and nobody has to wait for that lease to expire.
func BreakLock(ctx context.Context, store Store, key, value string) error {
	_, err := store.Commit(ctx, Txn{
		If:   []Cmp{HasValue(key, []byte(value))},
		Then: []Op{Delete(key)},
	})
	if err != nil && !errors.Is(err, ErrCompareFailed) {
		return fmt.Errorf("break lock %s: %w", key, err)
	}
	return nil
}

// EndTerm removes a lock if it still belongs to the term that created it at revision. The
// caller knows that its holder has ended, so that nobody has to wait for the lease.
func EndTerm(ctx context.Context, store Store, key string, revision int64) error {
	_, err := store.Commit(ctx, Txn{
		If:   []Cmp{{Type: CmpCreate, Key: key, Revision: revision}},
		Then: []Op{Delete(key)},
	})
	if err != nil && !errors.Is(err, ErrCompareFailed) {
		return fmt.Errorf("end the leadership of %s at revision %d: %w", key, revision, err)
	}
	return nil
}

// waitAbsent returns when key does not exist.
func waitAbsent(ctx context.Context, store Store, key string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	there := false
	for b := range store.Watch(ctx, key) {
		if b.Snapshot {
			there = false
		}
		for _, ev := range b.Events {
			if ev.KV.Key == key {
				there = !ev.Deleted
			}
		}
		if !there {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errs.New(errs.Unavailable, "the store client is closed")
}

// attempt tries to create the lock once.
func attempt(ctx context.Context, store Store, key, value string, ttl time.Duration) (*term, error) {
	lease, err := store.Grant(ctx, ttl)
	if err != nil {
		return nil, err
	}
	rev, err := store.Commit(ctx, Txn{
		If:   []Cmp{Absent(key)},
		Then: []Op{PutLeased(key, []byte(value), lease.ID())},
	})
	if err != nil {
		// Also if the outcome is unknown: if the lock is ours it is removed with its
		// lease. ctx may have ended, and the store may be unavailable; then the lease
		// expires by itself.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
		defer cancel()
		_ = lease.Release(bye)
		return nil, err
	}
	t := &term{
		fence: Cmp{Type: CmpCreate, Key: key, Revision: rev},
		lease: lease, lost: make(chan struct{}), watched: make(chan struct{}),
	}
	// The term outlasts the campaign.
	wctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	go t.watch(wctx, store)
	return t, nil
}

// term is a lock that is held.
type term struct {
	fence   Cmp
	lease   Lease
	lost    chan struct{}
	once    sync.Once
	stop    context.CancelFunc
	watched chan struct{} // closed when watch has returned
}

func (t *term) Fence() Cmp            { return t.fence }
func (t *term) Lost() <-chan struct{} { return t.lost }
func (t *term) end()                  { t.once.Do(func() { close(t.lost) }) }

// watch ends the term when its lease ends, or when somebody removes the key.
func (t *term) watch(ctx context.Context, store Store) {
	defer close(t.watched)
	defer t.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := store.Watch(ctx, t.fence.Key)
	for {
		select {
		case <-t.lease.Done():
			return
		case b, ok := <-events:
			if !ok || !t.mine(b) {
				return
			}
		}
	}
}

// mine reports whether the key is still the one created by this term after a batch.
func (t *term) mine(b Batch) bool {
	mine := !b.Snapshot
	for _, ev := range b.Events {
		if ev.KV.Key == t.fence.Key {
			mine = !ev.Deleted && ev.KV.CreateRevision == t.fence.Revision
		}
	}
	return mine
}

// Resign implements Leadership. Lost is closed first, then the lock is released.
func (t *term) Resign(ctx context.Context) error {
	t.end()
	t.stop()
	select {
	case <-t.watched:
	case <-ctx.Done():
	}
	if err := t.lease.Release(ctx); err != nil {
		return fmt.Errorf("resign %s: %w", t.fence.Key, err)
	}
	return nil
}
