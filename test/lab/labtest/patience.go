package labtest

import (
	"os"
	"strconv"
	"time"
)

// Patience is how long a test waits for something that takes up to d on a machine that
// is not starved: CONTIV_TEST_TIME_SCALE (a number, 1 without it) times d. No test
// passes or fails by how fast a machine is; this bounds what would never happen.
func Patience(d time.Duration) time.Duration {
	scale, err := strconv.ParseFloat(os.Getenv("CONTIV_TEST_TIME_SCALE"), 64)
	if err != nil || scale <= 0 {
		return d
	}
	return time.Duration(scale * float64(d))
}
