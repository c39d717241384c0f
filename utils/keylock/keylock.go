// Package keylock has callers that concern the same thing take turns, while others go
// on. Waiting for one's turn ends with a context.
package keylock

import (
	"context"
	"sync"

	"github.com/contiv/netplugin/utils/errs"
)

// Locks holds the keys that are taken. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// Lock waits until nobody holds key, and takes it until release is called. When ctx
// ends first it returns an error of kind Unavailable.
func (l *Locks) Lock(ctx context.Context, key string) (release func(), err error) {
	for {
		l.mu.Lock()
		other, taken := l.busy[key]
		if !taken {
			mine := make(chan struct{})
			if l.busy == nil {
				l.busy = map[string]chan struct{}{}
			}
			l.busy[key] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.busy, key)
				l.mu.Unlock()
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, errs.New(errs.Unavailable, "another call for %s is still running", key)
		}
	}
}
