package servertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
)

// Outages tests what every store makes of a server that is down, or has forgotten.
func (b Backend) Outages(t *testing.T) {
	for name, test := range map[string]func(*testing.T, Backend){
		"stopped under a watch":      func(t *testing.T, b Backend) { restart(t, b, syscall.SIGTERM) },
		"killed under a watch":       func(t *testing.T, b Backend) { restart(t, b, syscall.SIGKILL) },
		"late":                       late,
		"lost data":                  func(t *testing.T, b Backend) { dataLoss(t, b, 0) },
		"lost data, longer history":  func(t *testing.T, b Backend) { dataLoss(t, b, 60) },
		"leases end without renewal": leaseEnds,
	} {
		t.Run(name, func(t *testing.T) {
			if b.Parallel {
				t.Parallel()
			}
			test(t, b)
		})
	}
}

// restart: a server that ends and comes back is not noticed by a watch, nor by requests,
// except that they take longer.
func restart(t *testing.T, b Backend, sig syscall.Signal) {
	s := b.Server(t)
	f := b.Follow(t, s)
	f.Put(t, "a", "1")
	f.Until(t, "a", "1")
	s.Stop(t, sig)
	short, cancel := context.WithTimeout(f.Ctx, 300*time.Millisecond)
	_, err := f.Store.Get(short, Root+"a")
	cancel()
	if !errs.Is(err, errs.Timeout) && !errs.Is(err, errs.Unavailable) {
		t.Errorf("Get while the server is down: %v", err)
	}
	s.Start(t)
	f.Put(t, "a", "2")
	f.Until(t, "a", "2")
	f.Put(t, "b", "1")
	f.Until(t, "b", "1")
	if f.Replica.Snapshots != 1 {
		t.Errorf("%d snapshots, want 1", f.Replica.Snapshots)
	}
}

// late: nothing fails because the server comes later.
func late(t *testing.T, b Backend) {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	server := b.Server(t)
	s := b.Connect(t, server.URL())
	w := s.Watch(ctx, Root)
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if err := s.Health(short); err == nil || !strings.Contains(err.Error(), server.URL()) {
		t.Errorf("Health without a server: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(Root+"a", nil)}})
		if err != nil && !errs.Is(err, errs.Unavailable) { // which a slow election makes it
			t.Error(err)
		}
	})
	wg.Go(func() {
		if _, err := s.Grant(ctx, time.Minute); err != nil {
			t.Error(err)
		}
	})
	server.Start(t)
	if b := <-w; !b.Snapshot {
		t.Errorf("first batch %+v", b)
	}
	wg.Wait()
}

// dataLoss: a store that comes back empty, or with another history that is as long as the
// lost one, makes a watch restart. writes is how much of another history it has.
func dataLoss(t *testing.T, b Backend, writes int) {
	s := b.Server(t)
	f := b.Follow(t, s)
	for i := range 40 {
		f.Put(t, "old", fmt.Sprint(i))
	}
	f.Until(t, "old", "39")
	s.Stop(t, syscall.SIGKILL)
	s.Wipe(t)
	if writes > 0 { // behind the watch's back, then back on its port
		back := s.Move(t)
		s.Start(t)
		other := b.Connect(t, s.URL())
		for i := range writes {
			if _, err := other.Commit(f.Ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(fmt.Sprintf("%snew%d", Root, i), nil)}}); err != nil {
				t.Fatal(err)
			}
		}
		s.Stop(t, syscall.SIGTERM)
		back()
	}
	s.Start(t)
	f.Put(t, "fresh", "1")
	f.Until(t, "fresh", "1")
	if _, there := f.Content()["old"]; there || f.Replica.Snapshots < 2 {
		t.Errorf("after %d snapshots: %v", f.Replica.Snapshots, f.Content())
	}
}

// leaseEnds: an owner that cannot renew its lease knows in time.
func leaseEnds(t *testing.T, b Backend) {
	s := b.Server(t)
	f := b.Follow(t, s)
	l, err := f.Store.Grant(f.Ctx, 2*time.Second) // or what the store allows at least
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(t, syscall.SIGKILL)
	select {
	case <-l.Done():
	case <-f.Ctx.Done():
		t.Error("the lease is not Done")
	}
}
