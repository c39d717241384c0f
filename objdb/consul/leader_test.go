package consul_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
)

const lock = "/contiv.io/lock/netmaster/leader"

// TestElection: one leads; when it resigns the next does at once, when it dies the next
// does after its session has ended; a former leader's writes fail.
func TestElection(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	p.Start(t)
	cfg := consul.Config{Endpoints: []string{p.URL()}}
	stores := []*consul.Store{connect(t, cfg), connect(t, cfg), connect(t, cfg)}
	write := func(l objdb.Leadership) error {
		_, err := stores[2].Commit(ctx, objdb.Txn{If: []objdb.Cmp{l.Fence()}, Then: []objdb.Op{objdb.Put("/contiv.io/written", nil)}})
		return err
	}
	wantLost := func(l objdb.Leadership) {
		t.Helper()
		select {
		case <-l.Lost():
		case <-ctx.Done():
			t.Fatal("a leadership that is over is not Lost")
		}
		if err := write(l); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("a former leader's write: %v", err)
		}
	}
	type won struct {
		lead objdb.Leadership
		err  error
	}
	campaign := func(s objdb.Store, value string) <-chan won {
		out := make(chan won, 1)
		go func() {
			l, err := objdb.Campaign(ctx, s, lock, value, time.Second)
			out <- won{l, err}
		}()
		return out
	}
	next := func(c <-chan won) objdb.Leadership {
		t.Helper()
		w := <-c
		if w.err != nil {
			t.Fatal(w.err)
		}
		if err := write(w.lead); err != nil {
			t.Errorf("a leader's write: %v", err)
		}
		return w.lead
	}

	first := next(campaign(stores[0], "a:1"))
	waiting := campaign(stores[1], "b:1")
	if kv, err := stores[1].Get(ctx, lock); err != nil || string(kv.Value) != "a:1" {
		t.Errorf("the lock says %q, %v", kv.Value, err)
	}
	if err := first.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	second := next(waiting)
	wantLost(first)

	waiting = campaign(stores[0], "a:1")
	if err := stores[1].Close(); err != nil { // it keeps its lease alive no longer
		t.Fatal(err)
	}
	third := next(waiting)
	wantLost(second)

	// A process that starts again does not wait for its own lease.
	if err := objdb.BreakLock(ctx, stores[0], lock, "a:1"); err != nil {
		t.Fatal(err)
	}
	wantLost(third)
	last := next(campaign(stores[0], "a:1"))
	if err := last.Resign(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestRegistry: instances come, change their role and go; one that has started again
// takes over the entry of its former life, which does not take it along when it ends.
func TestRegistry(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	p.Start(t)
	cfg := consul.Config{Endpoints: []string{p.URL()}}
	before, s := connect(t, cfg), connect(t, cfg)
	watch := objdb.WatchServices(ctx, s, "netmaster")
	until := func(roles ...string) {
		t.Helper()
		var got []string
		for {
			select {
			case list := <-watch:
				got = got[:0]
				for _, i := range list {
					got = append(got, i.HostAddr+" "+i.Role)
				}
				if slices.Equal(got, roles) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("services (-want +got):\n%s", cmp.Diff(roles, got))
			}
		}
	}
	info := objdb.ServiceInfo{ServiceName: "netmaster", Role: objdb.RoleFollower, HostAddr: "10.0.0.1", Port: 9999}
	dead := objdb.Register(ctx, before, info, nil)
	until("10.0.0.1 follower")
	if err := before.Close(); err != nil { // without taking leave
		t.Fatal(err)
	}
	info.Role = objdb.RoleLeader
	reborn := objdb.Register(ctx, s, info, nil)
	until("10.0.0.1 leader")
	info.HostAddr = "10.0.0.2"
	other := objdb.Register(ctx, s, info, nil)
	until("10.0.0.1 leader", "10.0.0.2 leader")
	reborn.SetRole(objdb.RoleFollower)
	until("10.0.0.1 follower", "10.0.0.2 leader")
	if err := other.Close(ctx); err != nil {
		t.Error(err)
	}
	until("10.0.0.1 follower")

	_ = dead.Close(ctx) // its store is closed: it cannot
	time.Sleep(2*consul.MinLease + 2*time.Second)
	if list, _, err := s.List(ctx, "/contiv.io/service/"); err != nil || len(list) != 1 {
		t.Errorf("after the session of the former life has ended: %v, %v", list, err)
	}
	if err := reborn.Close(ctx); err != nil {
		t.Error(err)
	}
	until()
}
