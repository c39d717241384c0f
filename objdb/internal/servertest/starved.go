package servertest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/busy"
)

// starved is how many busy processes there are beside a leader, and for how long.
func starved() (processes int, during time.Duration) {
	if os.Getenv("CONTIV_LONG") != "" {
		return 20, 10 * time.Minute
	}
	return 6, 8 * time.Second // other packages are tested at the same time
}

// LeadStarved leads, writes and watches on a machine with far more to do than it can, and
// fails when the lock is lost: nobody has taken it, and the store has not ended it.
func LeadStarved(t *testing.T, open func(testing.TB) objdb.Store, lease time.Duration) {
	store, other := open(t), open(t)
	n, during := starved()
	lead, err := objdb.Campaign(t.Context(), store, Root+"starved/lock", "a:1", lease)
	if err != nil {
		t.Fatal(err)
	}
	busy.Processes(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	seen := 0
	done := make(chan struct{})
	go func() { // what agents do
		defer close(done)
		for b := range other.Watch(ctx, Root+"starved/") {
			seen += len(b.Events)
		}
	}()
	var writes int
	var slowest time.Duration
	lost := 0
	for value := make([]byte, 4<<10); ctx.Err() == nil; writes++ {
		began := time.Now()
		_, err := store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{lead.Fence()}, Then: []objdb.Op{objdb.Put(Root+"starved/value", value)}})
		slowest = max(slowest, time.Since(began))
		if err != nil && ctx.Err() == nil {
			t.Logf("write %d after %s: %v", writes, time.Since(began).Round(time.Millisecond), err)
		}
		over := errors.Is(err, objdb.ErrCompareFailed)
		select {
		case <-lead.Lost():
			over = true
		default:
		}
		if over && ctx.Err() == nil {
			lost++
			_ = lead.Resign(ctx)
			if lead, err = objdb.Campaign(ctx, store, Root+"starved/lock", "a:1", lease); err != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	<-done
	if lost > 0 {
		t.Errorf("the lock was lost %d times", lost)
	}
	t.Logf("%d busy processes, %s: %d lost locks, %d writes, the slowest %s, %d events", n, during, lost, writes, slowest.Round(time.Millisecond), seen)
	if lead != nil {
		bye, over := context.WithTimeout(context.WithoutCancel(t.Context()), lease)
		defer over()
		_ = lead.Resign(bye)
	}
}
