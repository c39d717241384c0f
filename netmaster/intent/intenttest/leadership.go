// Package intenttest gives tests a leadership without an election.
package intenttest

import (
	"context"
	"sync"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// Leadership is a lock key in a store without competitors.
type Leadership struct {
	store objdb.Store
	fence objdb.Cmp
	lost  chan struct{}
	once  sync.Once
}

// Lead takes the lock: the previous holder becomes a former leader.
func Lead(ctx context.Context, store objdb.Store) (*Leadership, error) {
	txn := objdb.Txn{Then: []objdb.Op{objdb.Delete(state.LeaderKey)}}
	if _, err := store.Commit(ctx, txn); err != nil {
		return nil, err
	}
	txn.Then = []objdb.Op{objdb.Put(state.LeaderKey, []byte("127.0.0.1:9999"))}
	if _, err := store.Commit(ctx, txn); err != nil {
		return nil, err
	}
	kv, err := store.Get(ctx, state.LeaderKey)
	if err != nil {
		return nil, err
	}
	return &Leadership{
		store: store,
		fence: objdb.Cmp{Type: objdb.CmpCreate, Key: kv.Key, Revision: kv.CreateRevision},
		lost:  make(chan struct{}),
	}, nil
}

// Fence implements objdb.Leadership.
func (l *Leadership) Fence() objdb.Cmp { return l.fence }

// Lost implements objdb.Leadership.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

// Resign implements objdb.Leadership.
func (l *Leadership) Resign(ctx context.Context) error {
	l.Lose()
	_, err := l.store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{l.fence}, Then: []objdb.Op{objdb.Delete(state.LeaderKey)}})
	return err
}

// Lose ends the term, like a lease that could not be kept alive; the lock key stays.
func (l *Leadership) Lose() { l.once.Do(func() { close(l.lost) }) }
