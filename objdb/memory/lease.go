package memory

import (
	"context"
	"sync"
	"time"

	"github.com/contiv/netplugin/objdb"
)

// lease lives until it is released, expired, or its client has been closed for a TTL.
type lease struct {
	s    *Store
	id   objdb.LeaseID
	ttl  time.Duration
	once sync.Once
	done chan struct{}
}

func (l *lease) ID() objdb.LeaseID     { return l.id }
func (l *lease) Done() <-chan struct{} { return l.done }

// Release implements objdb.Lease.
func (l *lease) Release(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.s.d.end(l.id)
	l.s.mu.Lock()
	delete(l.s.leases, l.id)
	l.s.mu.Unlock()
	l.close()
	return nil
}

func (l *lease) close() { l.once.Do(func() { close(l.done) }) }

// abandon is what a client that is gone does: nothing, until the TTL is over.
func (l *lease) abandon() {
	l.close()
	time.AfterFunc(l.ttl, func() { l.s.d.end(l.id) })
}
