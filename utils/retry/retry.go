// Package retry spaces repeated attempts. The waits get longer, and no two processes have
// the same ones: after an outage a thousand agents must not come back in step.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// spread is how far a wait may be from its interval, as a share of it.
const spread = 0.5

// Backoff spaces the attempts at one thing. Create it with New. It is not safe for
// concurrent use.
type Backoff struct{ exp backoff.ExponentialBackOff }

// New makes a Backoff. Its waits are about first in the beginning (from half of it to one
// and a half times it), about twice as long each time, and never longer than longest.
func New(first, longest time.Duration) *Backoff {
	top := time.Duration(float64(longest) / (1 + spread))
	b := &Backoff{backoff.ExponentialBackOff{
		InitialInterval: min(first, top), MaxInterval: top, Multiplier: 2, RandomizationFactor: spread,
	}}
	b.exp.Reset()
	return b
}

// Next returns how long to wait before the next attempt.
func (b *Backoff) Next() time.Duration { return b.exp.NextBackOff() }

// Reset makes the next wait a first one: an attempt has succeeded.
func (b *Backoff) Reset() { b.exp.Reset() }

// Wait waits before the next attempt. It returns false when ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool { return Pause(ctx, b.Next()) }

// Pause waits for d. It returns false when ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
