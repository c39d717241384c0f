package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// lease refreshes itself as remote.Keeper says. (The client library's own keep-alive counts
// a lease's life from the answer, and looks at its clock twice a second.)
type lease struct {
	s    *Store
	id   clientv3.LeaseID
	done chan struct{}
	stop context.CancelFunc
	once sync.Once
}

// Grant implements objdb.Store. etcd counts in seconds: ttl is rounded up, and to at
// least 3/2 of the servers' election time-out.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (objdb.Lease, error) {
	if ttl <= 0 {
		return nil, errs.New(errs.Invalid, "lease of %s: the time to live must be positive", ttl)
	}
	ctx, over := s.life.Bound(ctx)
	defer over()
	seconds := int64((ttl + time.Second - 1) / time.Second)
	b := remote.NewBackoff()
	for {
		sent := time.Now()
		try, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), tryWithin)
		resp, err := s.c.Grant(try, seconds)
		cancel()
		// A lease granted without our learning of it just ends, so retrying is safe.
		if err != nil && s.again(ctx, err, b) {
			continue
		}
		if err != nil {
			return nil, s.wrap(err, "grant lease")
		}
		l := &lease{s: s, id: resp.ID, done: make(chan struct{})}
		var lctx context.Context
		lctx, l.stop = context.WithCancel(s.life.Context())
		if !s.life.Go(func() {
			defer l.close()
			l.keepAlive(lctx, sent, time.Duration(resp.TTL)*time.Second)
		}) {
			l.close()
		}
		return l, nil
	}
}

func (l *lease) ID() objdb.LeaseID     { return objdb.LeaseID(l.id) }
func (l *lease) Done() <-chan struct{} { return l.done }
func (l *lease) close()                { l.once.Do(func() { close(l.done) }) }

// keepAlive returns when the lease has ended or may have.
func (l *lease) keepAlive(ctx context.Context, granted time.Time, ttl time.Duration) {
	remote.Keeper{TTL: ttl, Granted: granted, Renew: func(ctx context.Context) remote.Renewal {
		resp, err := l.s.renewals().KeepAliveOnce(ctx, l.id)
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return remote.Renewal{Gone: true}
		case err != nil:
			return remote.Renewal{Err: err}
		}
		return remote.Renewal{TTL: time.Duration(resp.TTL) * time.Second}
	}}.Run(ctx)
}

// renewals is the client that renews leases.
func (s *Store) renewals() *clientv3.Client {
	s.leaseOnce.Do(func() {
		s.leases = s.c
		if s.dial == nil {
			return
		}
		if c, err := s.dial(); err == nil {
			s.leases = c
		}
	})
	return s.leases
}

// Release implements objdb.Lease.
func (l *lease) Release(ctx context.Context) error {
	l.stop()
	l.close()
	ctx, over := l.s.life.Bound(ctx)
	defer over()
	b := remote.NewBackoff()
	for {
		try, cancel := context.WithTimeout(ctx, tryWithin)
		_, err := l.s.c.Revoke(try, l.id)
		cancel()
		switch {
		case err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound):
			return nil
		case l.s.again(ctx, err, b):
			continue
		}
		return l.s.wrap(err, "release lease")
	}
}

// again reports, after a pause, whether a request that may be repeated should be.
func (s *Store) again(ctx context.Context, err error, b *retry.Backoff) bool {
	return (passing(err) || kind(err) == errs.Timeout) && !s.life.Over() && b.Wait(ctx)
}
