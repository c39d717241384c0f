package pace

import (
	"strconv"
	"testing"
)

// TestLimiter: one who asks too often is refused, others are not, and memory is bounded.
func TestLimiter(t *testing.T) {
	l := New(1, 3)
	allowed := 0
	for range 100 {
		if l.Allow("a") {
			allowed++
		}
	}
	if allowed < 3 || allowed > 90 {
		t.Errorf("%d of 100 at once, expected about 3", allowed)
	}
	if !l.Allow("b") {
		t.Error("another client is refused")
	}
	for i := range 3 * maxClients {
		l.Allow(strconv.Itoa(i))
	}
	if len(l.clients) > maxClients {
		t.Errorf("%d clients are remembered", len(l.clients))
	}
}
