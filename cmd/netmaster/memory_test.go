package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// TestGiveBack: what lies idle is given back at the next tick, and nothing is done when little is.
func TestGiveBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only when it is told to
	ctx, cancel := context.WithCancel(t.Context())
	ticks, done := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(done)
		giveBack(ctx, ticks, logrus.New())
	}()
	tick := func() (collections uint32) {
		ticks <- time.Time{}
		ticks <- time.Time{} // now the first one has been dealt with
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	used := make([]byte, 2*spare)
	for i := range used {
		used[i] = 1
	}
	runtime.GC() // it is in use
	if n := idle(); n >= spare {
		t.Errorf("%d bytes in use count as idle", n)
	}
	runtime.KeepAlive(used)
	runtime.GC()
	if n := idle(); n < 2*spare {
		t.Errorf("%d bytes were used and are free, but %d count as idle", len(used), n)
	}
	before := tick()
	if n := idle(); n >= spare {
		t.Errorf("%d bytes are idle still", n)
	}
	if after := tick(); after != before {
		t.Errorf("%d garbage collections although little is idle", after-before)
	}
	cancel()
	<-done
}
