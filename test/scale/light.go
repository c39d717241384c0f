package main

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// light follows the store as an agent does, and keeps nothing of it.
type light struct {
	seen history

	mu                 sync.Mutex
	revision, settings int64
	events             int
	changed            signal.Signal
}

// run follows the store until ctx ends.
func (l *light) run(ctx context.Context, store objdb.Store) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for b := range store.Watch(ctx, state.GlobalKey) {
			l.note(func() { l.settings = b.Revision })
		}
		return ctx.Err()
	})
	g.Go(func() error {
		for b := range store.Watch(ctx, state.StateRoot) {
			l.seen.reach(b.Revision)
			l.note(func() { l.revision, l.events = b.Revision, l.events+len(b.Events) })
		}
		return ctx.Err()
	})
	return g.Wait()
}

func (l *light) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	l.changed.Broadcast()
}

// Progress implements cluster.Follower.
func (l *light) Progress() (revision, settings int64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revision, l.settings, l.changed.Next()
}

// Ready implements cluster.Follower.
func (l *light) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revision == 0 {
		return errs.New(errs.Unavailable, "waiting for the store")
	}
	return nil
}

// Flushed implements cluster.Realiser: what is seen counts as done.
func (*light) Flushed(context.Context) error { return nil }

// Summary implements cluster.Realiser.
func (l *light) Summary() drivers.Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	return drivers.Summary{Flows: l.events}
}
