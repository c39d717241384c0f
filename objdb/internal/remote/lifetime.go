// Package remote holds what the clients of stores in other processes have in common.
package remote

import (
	"context"
	"sync"
)

// Lifetime is that of a client: its goroutines and requests end with it. The zero
// Lifetime is not ready; use NewLifetime.
type Lifetime struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu sync.Mutex // between Go and End
	wg sync.WaitGroup
}

// NewLifetime returns one that has begun.
func NewLifetime() *Lifetime {
	l := &Lifetime{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Context ends with the lifetime.
func (l *Lifetime) Context() context.Context { return l.ctx }

// Over reports whether it has ended.
func (l *Lifetime) Over() bool { return l.ctx.Err() != nil }

// Go runs f in a goroutine that Wait waits for. It returns false, and does nothing,
// when the lifetime is over.
func (l *Lifetime) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Over() {
		return false
	}
	l.wg.Go(f)
	return true
}

// Bound returns a context that also ends with the lifetime, and what to call when the
// request is over. A client library alone need not end the requests that wait, least of
// all in a server of this very process.
func (l *Lifetime) Bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	if l.Over() {
		cancel()
	}
	return ctx, func() {
		stop()
		cancel()
	}
}

// End ends the lifetime: no goroutine begins after it.
func (l *Lifetime) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
}

// Wait waits for the goroutines.
func (l *Lifetime) Wait() { l.wg.Wait() }
