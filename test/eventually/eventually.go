// Package eventually waits in tests for what comes for certain. No test passes or fails by
// how fast a machine is: a wait ends with the event, and its limit only bounds a test that
// has failed.
package eventually

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"
)

// limit is far more than anything takes on a machine that is not starved.
const limit = 3 * time.Minute

// Attempts follow each other at growing intervals between these two.
const (
	first = time.Millisecond
	last  = 100 * time.Millisecond
)

// Scaled is how long to wait for something that takes up to d on a machine that is not
// starved: CONTIV_TEST_TIME_SCALE (a number, 1 without it) times d.
func Scaled(d time.Duration) time.Duration {
	scale, err := strconv.ParseFloat(os.Getenv("CONTIV_TEST_TIME_SCALE"), 64)
	if err != nil || scale <= 0 {
		return d
	}
	return time.Duration(scale * float64(d))
}

// Succeeds tries until there is no error, which what describes. The test fails with the last
// error when the limit has passed, and ends when it has failed for another reason.
func Succeeds(t testing.TB, what string, try func() error) {
	t.Helper()
	within(t, Scaled(limit), what, try)
}

// True is Succeeds for a condition.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Succeeds(t, what, func() error {
		if !ok() {
			return errors.New("it is not so yet")
		}
		return nil
	})
}

func within(t testing.TB, limit time.Duration, what string, try func() error) {
	t.Helper()
	wait, deadline := first, time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		time.Sleep(wait)
		wait = min(2*wait, last)
	}
}
