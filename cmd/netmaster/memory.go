package main

import (
	"os"
	"runtime/debug"
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
