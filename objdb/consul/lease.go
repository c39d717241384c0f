package consul

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
)

// MinLease is the shortest time to live of a session.
const MinLease = 10 * time.Second

// lease is a session. It is renewed as remote.Keeper says; the servers end it up to twice the
// TTL after the last renewal.
type lease struct {
	s       *Store
	id      objdb.LeaseID
	session string
	done    chan struct{}
	stop    context.CancelFunc
	once    sync.Once
}

// leases knows the sessions that this Store keeps alive.
type leases struct {
	mu       sync.Mutex
	sessions map[objdb.LeaseID]string
}

func (l *leases) add(id objdb.LeaseID, session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions == nil {
		l.sessions = map[objdb.LeaseID]string{}
	}
	l.sessions[id] = session
}

func (l *leases) drop(id objdb.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, id)
}

func (l *leases) get(id objdb.LeaseID) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	session, ok := l.sessions[id]
	return session, ok
}

// sessionName is what the session of a lease is called, so that every client finds it.
func sessionName(id objdb.LeaseID) string { return fmt.Sprintf("contiv-lease-%016x", int64(id)) }

// session returns the session of a lease, also of one that another client keeps alive.
// The error is ErrLeaseEnded when there is none.
func (s *Store) session(ctx context.Context, id objdb.LeaseID) (string, error) {
	if session, ok := s.leases.get(id); ok {
		return session, nil
	}
	var found string
	err := s.repeat(ctx, func(ctx context.Context, c *api.Client) error {
		all, _, err := c.Session().List(consistent(ctx))
		for _, e := range all {
			if e.Name == sessionName(id) {
				found = e.ID
			}
		}
		return err
	})
	switch {
	case err != nil:
		return "", s.wrap(err, "look up a lease")
	case found == "":
		return "", errs.New(errs.Unavailable, "%s: lease %d: %w", s.name, id, objdb.ErrLeaseEnded)
	}
	return found, nil
}

// Grant implements objdb.Store. Consul counts in seconds: ttl is rounded up, and to at
// least MinLease.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (objdb.Lease, error) {
	if ttl <= 0 {
		return nil, errs.New(errs.Invalid, "lease of %s: the time to live must be positive", ttl)
	}
	ttl = max((ttl + time.Second - 1).Truncate(time.Second), MinLease)
	ctx, over := s.life.Bound(ctx)
	defer over()
	var (
		id      = objdb.LeaseID(rand.Int64N(math.MaxInt64) + 1)
		session string
		sent    time.Time
	)
	// A session made without our learning of it just ends, so retrying is safe. (It has
	// the same name, and nobody knows that yet.)
	err := s.repeat(ctx, func(ctx context.Context, c *api.Client) (err error) {
		sent = time.Now()
		session, _, err = c.Session().CreateNoChecks(&api.SessionEntry{
			Name:     sessionName(id),
			TTL:      fmt.Sprintf("%ds", ttl/time.Second),
			Behavior: api.SessionBehaviorDelete,
			// Keys of a session that has ended could not be locked for 15 s otherwise.
			// (The library takes zero for not set.)
			LockDelay: time.Millisecond,
		}, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
	if err != nil {
		return nil, s.wrap(err, "grant lease")
	}
	s.leases.add(id, session)
	l := &lease{s: s, id: id, session: session, done: make(chan struct{})}
	var lctx context.Context
	lctx, l.stop = context.WithCancel(s.life.Context())
	if !s.life.Go(func() {
		defer l.end()
		l.keepAlive(lctx, sent, ttl)
	}) {
		l.end()
	}
	return l, nil
}

func (l *lease) ID() objdb.LeaseID     { return l.id }
func (l *lease) Done() <-chan struct{} { return l.done }

func (l *lease) end() {
	l.once.Do(func() {
		l.s.leases.drop(l.id)
		close(l.done)
	})
}

// keepAlive returns when the lease has ended or may have.
func (l *lease) keepAlive(ctx context.Context, granted time.Time, ttl time.Duration) {
	remote.Keeper{TTL: ttl, Granted: granted, Renew: func(ctx context.Context) remote.Renewal {
		var there bool
		// One that is silent gives way to another server while there is time to ask it.
		t := l.s.try(ctx, ttl/3, func(ctx context.Context, c *api.Client) error {
			entry, _, err := c.Session().Renew(l.session, (&api.WriteOptions{}).WithContext(ctx))
			there = entry != nil
			return err
		})
		return remote.Renewal{TTL: ttl, Gone: t.err == nil && !there, Err: t.err}
	}}.Run(ctx)
}

// Release implements objdb.Lease.
func (l *lease) Release(ctx context.Context) error {
	l.stop()
	l.end()
	ctx, over := l.s.life.Bound(ctx)
	defer over()
	err := l.s.repeat(ctx, func(ctx context.Context, c *api.Client) error {
		_, err := c.Session().Destroy(l.session, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
	return l.s.wrap(err, "release lease")
}
