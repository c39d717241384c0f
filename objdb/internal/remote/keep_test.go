package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contiv/netplugin/test/eventually"
)

var errNoAnswer = errors.New("no answer")

// keep runs a Keeper with a TTL of one second, on a clock of its own, which the store renews
// as told. It returns how long the lease has lived, and how often it was asked for: an hour
// means until the end.
func keep(t *testing.T, renew func(ctx context.Context, call int) Renewal) (lived time.Duration, calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var n atomic.Int32
		began := time.Now()
		Keeper{TTL: time.Second, Granted: began, Renew: func(ctx context.Context) Renewal { return renew(ctx, int(n.Add(1))) }}.Run(ctx)
		lived, calls = time.Since(began), int(n.Load())
	})
	return lived, calls
}

// hang never answers.
func hang(ctx context.Context) Renewal {
	<-ctx.Done()
	return Renewal{Err: ctx.Err()}
}

// answer answers after a while.
func answer(ctx context.Context, after time.Duration) Renewal {
	select {
	case <-time.After(after):
		return Renewal{TTL: time.Second}
	case <-ctx.Done():
		return Renewal{Err: ctx.Err()}
	}
}

// TestSlowAnswersCount: answers that come after a third of the time to live, or after a later
// question has been asked, renew the lease; so do answers after many failures.
func TestSlowAnswersCount(t *testing.T) {
	for name, renew := range map[string]func(ctx context.Context, call int) Renewal{
		"slow": func(ctx context.Context, _ int) Renewal { return answer(ctx, 600*time.Millisecond) },
		"every fourth fails not": func(ctx context.Context, call int) Renewal {
			if call%4 != 0 {
				return Renewal{Err: errNoAnswer}
			}
			return answer(ctx, 0)
		},
		"every second hangs": func(ctx context.Context, call int) Renewal {
			if call%2 == 0 {
				return hang(ctx)
			}
			return answer(ctx, 100*time.Millisecond)
		},
	} {
		if lived, calls := keep(t, renew); lived < time.Hour {
			t.Errorf("%s: the lease ends after %s and %d questions", name, lived, calls)
		}
	}
}

// TestLeaseEnds: when the store says so, at once; when it says nothing, with the time to live.
func TestLeaseEnds(t *testing.T) {
	for name, c := range map[string]struct {
		renew func(ctx context.Context, call int) Renewal
		lived time.Duration
	}{
		"gone":      {func(context.Context, int) Renewal { return Renewal{Gone: true} }, time.Second / 3},
		"no answer": {func(ctx context.Context, _ int) Renewal { return hang(ctx) }, time.Second},
		"refused":   {func(context.Context, int) Renewal { return Renewal{Err: errNoAnswer} }, time.Second},
		"one answer": {func(ctx context.Context, call int) Renewal {
			if call == 1 {
				return answer(ctx, 200*time.Millisecond)
			}
			return hang(ctx)
		}, time.Second/3 + time.Second}, // counted from the question, not from the answer
	} {
		lived, calls := keep(t, c.renew)
		if lived.Round(time.Millisecond) != c.lived.Round(time.Millisecond) {
			t.Errorf("%s: the lease lives %s and %d questions long, want %s", name, lived, calls, c.lived)
		}
	}
}

// TestLateProcessAsks: a process that has not run for longer than the time to live asks
// whether its lease has gone before it takes it for lost.
func TestLateProcessAsks(t *testing.T) {
	for _, c := range []struct {
		answer Renewal
		runs   bool
	}{
		{Renewal{TTL: time.Minute}, true},
		{Renewal{Gone: true}, false},
		{Renewal{Err: errNoAnswer}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(10*time.Second))
			defer cancel()
			began, asked := time.Now(), 0
			Keeper{TTL: time.Second, Granted: began.Add(-10 * time.Second), Renew: func(context.Context) Renewal {
				asked++
				return c.answer
			}}.Run(ctx)
			if runs := time.Since(began) == 10*time.Second; runs != c.runs || asked != 1 {
				t.Errorf("%+v: the lease is kept: %t, after %d questions", c.answer, runs, asked)
			}
		})
	}
}
