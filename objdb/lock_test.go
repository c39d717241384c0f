package objdb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
)

const (
	lock = "/contiv.io/lock/test"
	ttl  = time.Minute
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(30*time.Second))
	t.Cleanup(cancel)
	return ctx
}

func campaign(t *testing.T, ctx context.Context, s objdb.Store, value string) objdb.Leadership {
	t.Helper()
	l, err := objdb.Campaign(ctx, s, lock, value, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantLost(t *testing.T, ctx context.Context, l objdb.Leadership) {
	t.Helper()
	select {
	case <-l.Lost():
	case <-ctx.Done():
		t.Fatal("a leadership that is over is not Lost")
	}
}

func wantFence(t *testing.T, ctx context.Context, s objdb.Store, l objdb.Leadership, holds bool) {
	t.Helper()
	_, err := s.Commit(ctx, objdb.Txn{If: []objdb.Cmp{l.Fence()}, Then: []objdb.Op{objdb.Put("/written", nil)}})
	if holds && err != nil {
		t.Errorf("a leader's write: %v", err)
	}
	if !holds && !errors.Is(err, objdb.ErrCompareFailed) {
		t.Errorf("a former leader's write: %v, want ErrCompareFailed", err)
	}
}

func TestResignHandsOver(t *testing.T) {
	ctx := testContext(t)
	s := newStore(t)
	first := campaign(t, ctx, s, "10.0.0.1:9999")
	if kv, err := s.Get(ctx, lock); err != nil || string(kv.Value) != "10.0.0.1:9999" {
		t.Errorf("lock = %q, %v", kv.Value, err)
	}
	elected := make(chan objdb.Leadership)
	other := connect(t, s)
	go func() {
		l, err := objdb.Campaign(ctx, other, lock, "10.0.0.2:9999", ttl)
		if err != nil {
			t.Error(err)
		}
		elected <- l
	}()
	select {
	case <-elected:
		t.Fatal("two leaders")
	case <-time.After(50 * time.Millisecond):
	}
	wantFence(t, ctx, s, first, true)
	if err := first.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	wantLost(t, ctx, first)
	second := <-elected
	wantFence(t, ctx, s, first, false)
	wantFence(t, ctx, s, second, true)
}

// TestTermEnds: the term ends however the lock is lost, also if the next holder has the
// same value.
func TestTermEnds(t *testing.T) {
	for name, take := range map[string]func(context.Context, *memory.Store) error{
		"lease ended":    func(_ context.Context, s *memory.Store) error { s.ExpireAll(); return nil },
		"client closed":  func(_ context.Context, s *memory.Store) error { return s.Close() },
		"broken by name": func(ctx context.Context, s *memory.Store) error { return objdb.BreakLock(ctx, s, lock, "me") },
		"overwritten": func(ctx context.Context, s *memory.Store) error {
			if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Delete(lock)}}); err != nil {
				return err
			}
			_, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(lock, []byte("me"))}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			s := newStore(t)
			other := connect(t, s)
			l := campaign(t, ctx, s, "me")
			select {
			case <-l.Lost():
				t.Fatal("lost at once")
			case <-time.After(20 * time.Millisecond):
			}
			if err := take(ctx, s); err != nil {
				t.Fatal(err)
			}
			wantLost(t, ctx, l)
			if name == "client closed" {
				return // its key expires a TTL later
			}
			if name != "overwritten" {
				next := campaign(t, ctx, other, "me")
				wantFence(t, ctx, other, next, true)
			}
			wantFence(t, ctx, other, l, false)
		})
	}
}

func TestBreakLock(t *testing.T) {
	ctx := testContext(t)
	s := newStore(t)
	if err := objdb.BreakLock(ctx, s, lock, "me"); err != nil {
		t.Errorf("no lock to break: %v", err)
	}
	l := campaign(t, ctx, s, "another")
	if err := objdb.BreakLock(ctx, s, lock, "me"); err != nil {
		t.Errorf("lock of another: %v", err)
	}
	wantFence(t, ctx, s, l, true)
}

// TestCampaignThroughFaults: a store that fails before or after the decisive write delays
// the election, but never leaves a lock without a leader who knows of it.
func TestCampaignThroughFaults(t *testing.T) {
	away := errs.New(errs.Unavailable, "away")
	for name, fault := range map[string]memory.Fault{"before": {Before: away}, "after": {After: away}} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			s := newStore(t)
			var n atomic.Int32
			s.OnCommit(func(objdb.Txn) memory.Fault {
				if n.Add(1) <= 2 {
					return fault
				}
				return memory.Fault{}
			})
			l := campaign(t, ctx, s, "me")
			wantFence(t, ctx, s, l, true)
		})
	}
}

func TestCampaignEndsWithContext(t *testing.T) {
	s := newStore(t)
	campaign(t, testContext(t), s, "holder")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := objdb.Campaign(ctx, s, lock, "me", ttl); !errs.Is(err, errs.Timeout) {
		t.Errorf("Campaign = %v, want Timeout", err)
	}
}

// TestOneLeaderAtATime: candidates that win, write under their fence, and lose or
// resign at random never interleave their writes.
func TestOneLeaderAtATime(t *testing.T) {
	ctx := testContext(t)
	base := newStore(t)
	var (
		wg      sync.WaitGroup
		leaders atomic.Int32
	)
	for i := range 5 {
		s := connect(t, base)
		wg.Go(func() {
			for n := range 8 {
				l, err := objdb.Campaign(ctx, s, lock, fmt.Sprint(i), ttl)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = s.Commit(ctx, objdb.Txn{If: []objdb.Cmp{l.Fence()}, Then: []objdb.Op{objdb.Put("/holder", fmt.Append(nil, i))}})
				if err != nil {
					t.Errorf("the leader's own write: %v", err)
				}
				if now := leaders.Add(1); now != 1 {
					t.Errorf("%d leaders", now)
				}
				leaders.Add(-1)
				if (i+n)%3 == 0 {
					s.ExpireAll()
					wantLost(t, ctx, l)
				}
				if err := l.Resign(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestEndTerm: a term can be ended by those who saw its holder end, but not the next term
// of the same holder.
func TestEndTerm(t *testing.T) {
	ctx := testContext(t)
	s := newStore(t)
	first := campaign(t, ctx, s, "10.0.0.1:9999")
	revision := first.Fence().Revision
	for range 2 {
		if err := objdb.EndTerm(ctx, s, lock, revision); err != nil {
			t.Fatal(err)
		}
		wantLost(t, ctx, first)
	}
	second := campaign(t, ctx, s, "10.0.0.1:9999")
	if err := objdb.EndTerm(ctx, s, lock, revision); err != nil {
		t.Fatal(err)
	}
	wantFence(t, ctx, s, second, true)
}
