package intent

import (
	"context"
	"strings"
	"time"
)

// A reserved address waits for its endpoint. A container runtime that reserves one and
// then gives up may never say so; after a while nobody can be about to use it.
const (
	reservedFor = 10 * time.Minute // from when this leader has seen the reservation first
	sweepEvery  = time.Minute
	// lateFor is how long a release is waited for after its address has gone.
	lateFor = time.Hour
)

// reservation is one claim of an address, at one time: the next claim of the same
// address has another revision.
type reservation struct {
	claimKey
	rev int64
}

// sweepReserved gives back addresses that have been reserved for too long, until ctx
// or the term ends.
func (e *Engine) sweepReserved(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	seen, late := map[reservation]time.Time{}, map[reservation]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.writer.stopped:
			return
		case now := <-ticker.C:
			holders, err := e.holders(ctx)
			if err == nil {
				var stale []reservation
				seen, stale = e.staleReservations(seen, now, holders)
				err = e.giveBack(ctx, stale)
			}
			if err == nil {
				var over []reservation
				late, over = e.overdueReleases(late, now)
				err = e.forgetReleases(ctx, over)
			}
			if err != nil {
				e.cfg.Log.WithError(err).Warn("cannot release unused reserved addresses; retrying")
			}
		}
	}
}

// staleReservations returns which reservations have been seen since when, and those
// that have been for too long. What the manager of a swarm holds in the networks holders
// is none.
func (e *Engine) staleReservations(seen map[reservation]time.Time, now time.Time, holders map[string]bool) (next map[reservation]time.Time, stale []reservation) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	next = map[reservation]time.Time{}
	for k, r := range m.addrs.base {
		if !strings.HasPrefix(r.v.Owner, ownerReserved) || r.v.Held && holders[k.net] {
			continue
		}
		res := reservation{k, r.rev}
		if next[res] = firstSeen(seen, res, now); now.Sub(next[res]) >= reservedFor {
			stale = append(stale, res)
		}
	}
	return next, stale
}

// firstSeen is since when a record has been seen as it is: now, if it was not before.
func firstSeen(seen map[reservation]time.Time, r reservation, now time.Time) time.Time {
	if since, known := seen[r]; known {
		return since
	}
	return now
}

// overdueReleases returns which late releases have been waited for since when, and those
// that will not come any more.
func (e *Engine) overdueReleases(seen map[reservation]time.Time, now time.Time) (next map[reservation]time.Time, over []reservation) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	next = map[reservation]time.Time{}
	for k, r := range m.late.base {
		res := reservation{k, r.rev}
		if next[res] = firstSeen(seen, res, now); now.Sub(next[res]) >= lateFor {
			over = append(over, res)
		}
	}
	return next, over
}

// forgetReleases stops waiting for releases, where none has come or been added since.
func (e *Engine) forgetReleases(ctx context.Context, over []reservation) error {
	if len(over) == 0 {
		return nil
	}
	_, err := submit[struct{}](ctx, e.writer, true, func(x *tx) (reply, error) {
		for _, res := range over {
			if r, ok := x.late.base[res.claimKey]; ok && r.rev == res.rev {
				x.late.del(x, res.claimKey)
			}
		}
		return func(int64) any { return struct{}{} }, nil
	})
	return err
}

// giveBack frees addresses whose claims are still the given reservations.
func (e *Engine) giveBack(ctx context.Context, stale []reservation) error {
	if len(stale) == 0 {
		return nil
	}
	_, err := submit[struct{}](ctx, e.writer, true, func(x *tx) (reply, error) {
		for _, res := range stale {
			r, ok := x.addrs.base[res.claimKey]
			if !ok || r.rev != res.rev {
				continue
			}
			e.cfg.Log.WithField("network", res.net).WithField("address", res.what).WithField("owner", r.v.Owner).
				Info("releasing an address that was reserved and never used")
			if host, comes := releaser(r.v); comes {
				x.expectRelease(res.claimKey, host)
			}
			x.freeAddress(res.net, res.what, r.v.Owner)
		}
		return func(int64) any { return struct{}{} }, nil
	})
	return err
}
