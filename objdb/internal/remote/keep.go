package remote

import (
	"context"
	"time"
)

// Renewal is the outcome of asking a store to renew a lease.
type Renewal struct {
	TTL  time.Duration // the lease lives that long from now on, by the store's clock
	Gone bool          // the store does not know the lease any more
	Err  error         // no answer, or none that tells
}

// Keeper keeps a lease alive.
type Keeper struct {
	TTL     time.Duration // as granted
	Granted time.Time     // when the grant was sent
	// Renew asks the store once. It may be called while an earlier call waits for its answer.
	Renew func(ctx context.Context) Renewal
}

// How much is asked at once while the store does not answer, and what is late for a timer: a
// process that has not run for so long cannot tell whether the store would have answered.
const (
	renewals = 5
	late     = 250 * time.Millisecond
)

// Run returns when the lease has ended or may have: the store says so, or a whole TTL has
// passed since the last renewal that it accepted was sent, so that the end comes before the
// store's own decision. (The store counts from when it got the renewal.) Or when ctx ends.
//
// It asks again each third of the TTL. On a machine that has too much to do an answer may be
// on its way for seconds; a call is therefore never cut off while its answer still counts, and
// another one is made beside it. When the end finds that this process itself has not run in
// time, it asks once more: what the store still accepts is not lost.
func (k Keeper) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		Renewal
		sent time.Time
	}
	answers := make(chan answer, 2*renewals)
	pending := 0
	ask := func(ttl time.Duration) {
		pending++
		sent := time.Now()
		try, over := context.WithDeadline(ctx, sent.Add(ttl)) // so long it would count
		go func() {
			defer over()
			answers <- answer{k.Renew(try), sent}
		}()
	}
	ttl, refreshed := k.TTL, k.Granted
	next := refreshed.Add(ttl / 3)
	lastChance, chance := false, time.Time{} // until then
	for {
		end := refreshed.Add(ttl)
		if lastChance {
			end = chance
		}
		due := end
		if !lastChance && next.Before(end) && pending < renewals {
			due = next
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case a := <-answers:
			timer.Stop()
			pending--
			switch {
			case a.Err == nil && a.Gone:
				return
			case a.Err == nil && a.sent.After(refreshed):
				ttl, refreshed, lastChance = a.TTL, a.sent, false
				next = refreshed.Add(ttl / 3)
			case a.Err != nil && lastChance && pending == 0:
				return
			case a.Err != nil:
				next = earlier(next, time.Now().Add(ttl/10))
			}
		case <-timer.C:
			now := time.Now()
			switch {
			case lastChance:
				return
			case now.Before(end):
				ask(ttl)
				next = now.Add(ttl / 5)
			case now.Sub(due) > late:
				lastChance, chance = true, now.Add(ttl/3)
				ask(ttl / 3)
			default:
				return
			}
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
