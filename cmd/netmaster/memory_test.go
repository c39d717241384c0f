package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// TestSaveMemory: what lies idle is given back at the next tick, and nothing is done when little is.
func TestSaveMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only when it is told to
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	ctx, cancel := context.WithCancel(t.Context())
	ticks, done := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(done)
		saveMemory(ctx, ticks, logrus.New())
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
	if n, _ := heap(); n >= spare {
		t.Errorf("%d bytes in use count as idle", n)
	}
	runtime.KeepAlive(used)
	runtime.GC()
	if n, _ := heap(); n < 2*spare {
		t.Errorf("%d bytes were used and are free, but %d count as idle", len(used), n)
	}
	before := tick()
	if n, _ := heap(); n >= spare {
		t.Errorf("%d bytes are idle still", n)
	}
	if after := tick(); after != before {
		t.Errorf("%d garbage collections although little is idle", after-before)
	}
	cancel()
	<-done
	if n := debug.SetMemoryLimit(-1); n != roomy {
		t.Errorf("the limit is %d bytes, expected %d", n, roomy)
	}
	if n := memoryLimit(10 * roomy); n != 15*roomy {
		t.Errorf("with %d bytes in use the limit is %d, expected half as much again", 10*roomy, n)
	}
}
