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

// garbage is how much memory may be garbage before it is collected, in percent of what is in
// use. Much of what netmaster has in memory stays there; with Go's 100 it occupied twice that.
const garbage = 50

// saveMemory makes the program occupy less memory than Go programs do, unless the operator
// has a say of his own (GOGC, see package runtime).
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// spare is how much memory may lie idle, in bytes; it is looked at every lookEvery.
const (
	spare     = 64 << 20
	lookEvery = 30 * time.Second
)

// giveBack gives memory back that is left over when much was done at a time: a term began, or
// many agents read the whole state. Go would keep it for minutes. It looks at each tick.
func giveBack(ctx context.Context, ticks <-chan time.Time, log logrus.FieldLogger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		if idle() < spare {
			continue
		}
		if _, err := footprint.Shrink(); err != nil {
			log.WithError(err).Warn("cannot return unused memory to the system")
		}
	}
}

// idle is how many bytes of the heap are of no use: garbage, and what is free.
func idle() uint64 {
	read := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(read)
	objects, free, live := read[0].Value.Uint64(), read[1].Value.Uint64(), read[2].Value.Uint64()
	return objects + free - min(live, objects)
}
