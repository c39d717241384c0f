package eventually

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that is expected to fail.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = strings.TrimSpace(format)
	runtime.Goexit()
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		within(t, time.Second, "the third try", func() error {
			if tries++; tries < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if tries != 3 {
			t.Errorf("%d tries, expected 3", tries)
		}
	})
}

func TestWithinEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, r, done := time.Now(), &recorder{}, make(chan struct{})
		go func() {
			defer close(done)
			within(r, time.Minute, "nothing", func() error { return errors.New("never") })
		}()
		<-done
		if took := time.Since(start); r.said == "" || took < time.Minute || took > time.Minute+last {
			t.Errorf("ended after %s with %q, expected a failure after a minute", took, r.said)
		}
	})
}

func TestScaled(t *testing.T) {
	for scale, want := range map[string]time.Duration{"": time.Second, "4": 4 * time.Second, "0.5": 500 * time.Millisecond, "-1": time.Second, "x": time.Second} {
		t.Setenv("CONTIV_TEST_TIME_SCALE", scale)
		if got := Scaled(time.Second); got != want {
			t.Errorf("with %q a second takes %s, expected %s", scale, got, want)
		}
	}
}
