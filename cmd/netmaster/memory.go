package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/footprint"
)

// Bounds in bytes: from how much memory on garbage is collected before there is as much of it
// as of what is in use, and how much may lie idle. Both are looked at every lookEvery.
const (
	roomy     = 400 << 20
	spare     = 64 << 20
	lookEvery = 30 * time.Second
)

// memoryLimit is what the program may occupy with so much in use. It has to be more than that,
// or it would do little but collect garbage.
func memoryLimit(live uint64) int64 { return int64(max(roomy, live+live/2)) }

// saveMemory makes the program occupy less memory than Go programs do: it keeps to a limit,
// unless the operator has set one (GOMEMLIMIT, see package runtime), and gives back what is left
// over when much was done at a time: a term began, or many agents read the whole state. Go would
// keep that for minutes. It looks at each tick.
func saveMemory(ctx context.Context, ticks <-chan time.Time, log logrus.FieldLogger) {
	for {
		idle, live := heap()
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(memoryLimit(live))
		}
		if idle >= spare {
			if _, err := footprint.Shrink(); err != nil {
				log.WithError(err).Warn("cannot return unused memory to the system")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// heap is how many bytes of the heap are of no use, being garbage or free, and how many were in
// use when garbage was collected last.
func heap() (idle, live uint64) {
	read := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(read)
	objects, free, live := read[0].Value.Uint64(), read[1].Value.Uint64(), read[2].Value.Uint64()
	return objects + free - min(live, objects), live
}
