package keylock

import (
	"context"
	"sync"
	"testing"

	"github.com/contiv/netplugin/utils/errs"
)

func TestOneAtATime(t *testing.T) {
	var l Locks
	var wg sync.WaitGroup
	inside := 0 // the race detector, and the sum, tell when two were inside at once
	for range 50 {
		wg.Go(func() {
			release, err := l.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			inside++
		})
	}
	wg.Wait()
	if inside != 50 {
		t.Errorf("%d were inside, want 50", inside)
	}
}

func TestOthersGoOnAndWaitingEnds(t *testing.T) {
	var l Locks
	release, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := l.Lock(t.Context(), "b"); err != nil {
		t.Errorf("another key: %v", err)
	} else {
		other()
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lock(over, "a"); !errs.Is(err, errs.Unavailable) {
		t.Errorf("a taken key with a context that has ended: %v", err)
	}
	release()
	if again, err := l.Lock(over, "a"); err != nil {
		t.Errorf("a key that is free again: %v", err)
	} else {
		again()
	}
}
