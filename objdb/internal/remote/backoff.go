package remote

import (
	"context"
	"time"
)

// Backoff waits longer each time, 25 ms at first and a second at most. The zero
// Backoff is ready.
type Backoff struct{ d time.Duration }

// Wait returns false when ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool {
	b.d = min(max(2*b.d, 25*time.Millisecond), time.Second)
	return Pause(ctx, b.d)
}

// Pause returns false when ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
