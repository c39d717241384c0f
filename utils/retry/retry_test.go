package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitsGrow: each wait lies around twice the interval of the one before, none is longer
// than the longest, and a success starts from the beginning.
func TestWaitsGrow(t *testing.T) {
	const first, longest = 100 * time.Millisecond, 3 * time.Second
	for range 100 { // the waits are random
		b := New(first, longest)
		interval := first
		for i := range 12 {
			got := b.Next()
			if got < interval/2 || got > interval+interval/2+time.Millisecond || got > longest {
				t.Fatalf("wait %d is %s, want half to one and a half of %s, and at most %s", i, got, interval, longest)
			}
			interval = min(2*interval, longest*2/3)
		}
		b.Reset()
		if got := b.Next(); got > first+first/2 {
			t.Fatalf("the wait after a success is %s, want about %s", got, first)
		}
	}
}

// TestNobodyIsInStep: what waits for the same outage does not come back at the same time.
func TestNobodyIsInStep(t *testing.T) {
	const agents = 1000
	waits := map[time.Duration]int{}
	for range agents {
		b := New(time.Second, 10*time.Second)
		for range 9 {
			b.Next()
		}
		waits[b.Next().Truncate(100*time.Millisecond)]++
	}
	for wait, n := range waits {
		if n > agents/20 {
			t.Errorf("%d of %d agents wait for %s", n, agents, wait)
		}
	}
}

// TestOneWait: a longest wait shorter than the first one holds.
func TestOneWait(t *testing.T) {
	b := New(time.Second, 30*time.Millisecond)
	for range 20 {
		if got := b.Next(); got <= 0 || got > 30*time.Millisecond {
			t.Fatalf("wait %s, want at most 30 ms", got)
		}
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Pause(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("paused for %s, want an hour", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if New(time.Hour, 2*time.Hour).Wait(ctx) || time.Since(began) != time.Minute {
			t.Errorf("waited for %s although the context ended after a minute", time.Since(began))
		}
	})
}
