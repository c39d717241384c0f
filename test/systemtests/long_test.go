package systemtests

import (
	"os"
	"time"

	"github.com/contiv/netplugin/test/eventually"
)

// long says whether this run may take its time (make test-long).
func long() bool { return os.Getenv("CONTIV_LONG") != "" }

// restartRounds is how often a daemon is killed under traffic.
func restartRounds() int {
	switch {
	case long():
		return 100
	case eventually.Scaled(time.Second) > 5*time.Second: // each takes as much longer
		return 3
	}
	return 20
}
