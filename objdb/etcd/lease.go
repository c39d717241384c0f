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
)

// lease refreshes itself three times per TTL. It counts its life from the moment each
// successful refresh was sent, not answered, so that its Done comes before the
// server's decision, never after. (The client library's own keep-alive counts from the
// answer, and looks at its clock twice a second.)
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
	var b remote.Backoff
	for {
		sent := time.Now()
		try, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), tryWithin)
		resp, err := s.c.Grant(try, seconds)
		cancel()
		// A lease granted without our learning of it just ends, so trying again is safe.
		if err != nil && s.again(ctx, err, &b) {
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
func (l *lease) keepAlive(ctx context.Context, refreshed time.Time, ttl time.Duration) {
	next := time.NewTimer(ttl / 3)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		end := refreshed.Add(ttl)
		sent := time.Now()
		if !sent.Before(end) {
			return
		}
		// A try that hangs must leave time for another one, on another connection.
		try, cancel := context.WithDeadline(ctx, earlier(end, sent.Add(max(ttl/3, 500*time.Millisecond))))
		resp, err := l.s.c.KeepAliveOnce(try, l.id)
		cancel()
		switch {
		case err == nil:
			refreshed, ttl = sent, time.Duration(resp.TTL)*time.Second
			next.Reset(ttl/3 - time.Since(sent))
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return
		default:
			next.Reset(min(ttl/10, time.Until(end)))
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Release implements objdb.Lease.
func (l *lease) Release(ctx context.Context) error {
	l.stop()
	l.close()
	ctx, over := l.s.life.Bound(ctx)
	defer over()
	var b remote.Backoff
	for {
		try, cancel := context.WithTimeout(ctx, tryWithin)
		_, err := l.s.c.Revoke(try, l.id)
		cancel()
		switch {
		case err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound):
			return nil
		case l.s.again(ctx, err, &b):
			continue
		}
		return l.s.wrap(err, "release lease")
	}
}

// again reports, after a pause, whether a request that may be repeated should be.
func (s *Store) again(ctx context.Context, err error, b *remote.Backoff) bool {
	return (passing(err) || kind(err) == errs.Timeout) && !s.life.Over() && b.Wait(ctx)
}
