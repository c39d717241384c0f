package auth

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestWaits: after ten failures account and source wait, longer each time, and not for ever.
func TestWaits(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newLimiter(func() time.Time { return now })
	for i := range freeFailures {
		if err := l.begin("account jane", "source a"); err != nil {
			t.Fatalf("failure %d: %v", i+1, err)
		}
	}
	var waits []time.Duration
	for range 12 {
		err := l.begin("account jane", "source b")
		var e *Error
		if !errors.As(err, &e) || e.Code != 429 || e.Wait <= 0 {
			t.Fatalf("an account that waits: %v", err)
		}
		waits = append(waits, e.Wait)
		now = now.Add(e.Wait)
		if err := l.begin("account jane"); err != nil {
			t.Fatalf("after the wait: %v", err)
		}
	}
	if waits[0] != firstWait || waits[1] != 2*firstWait || waits[11] != longestWait {
		t.Errorf("waits = %v", waits)
	}
	for _, other := range []string{"account john", "source b"} {
		if err := l.begin(other); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	now = now.Add(forgetAfter + longestWait)
	for range freeFailures - 1 {
		if err := l.begin("account jane"); err != nil {
			t.Fatalf("after a long time: %v", err)
		}
	}
}

// TestAttemptsAtTheSameTime do not get around the limit, and those that succeed do not count.
func TestAttemptsAtTheSameTime(t *testing.T) {
	l := newLimiter(time.Now)
	passed := 0
	for range 100 {
		if l.begin("account jane") == nil {
			passed++
		}
	}
	if passed != freeFailures {
		t.Errorf("%d attempts at once, want %d", passed, freeFailures)
	}
	for range 3 * freeFailures {
		if err := l.begin("source a"); err != nil {
			t.Fatalf("logins that succeed: %v", err)
		}
		l.takeBack("source a")
	}
	if l.size() != 1 {
		t.Errorf("%d names are remembered, want 1", l.size())
	}
}

// TestLimiterIsBounded: it remembers those that failed last.
func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter(time.Now)
	for i := range 10_000 {
		_ = l.begin(fmt.Sprint("account ", i))
		_ = l.begin("account admin") // stays, since it is tried all the time
	}
	if l.size() > maxLimiterSet {
		t.Errorf("%d names are remembered, want at most %d", l.size(), maxLimiterSet)
	}
	if l.begin("account admin") == nil {
		t.Error("an account under attack was forgotten")
	}
}
