package systemtests

import "os"

// long says whether this run may take its time (make test-long).
func long() bool { return os.Getenv("CONTIV_LONG") != "" }

// restartRounds is how often a daemon is killed under traffic.
func restartRounds() int {
	if long() {
		return 100
	}
	return 20
}
