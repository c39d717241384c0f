package intent

import (
	"context"
	"strings"
	"time"
)

// A reserved address waits for its endpoint. A container runtime that gives up after
// reserving one may never report it; after some time the address can no longer be about to
// be used.
const (
	reservedFor = 10 * time.Minute // since this leader first saw the reservation
	sweepEvery  = time.Minute
	// lateFor is how long a release is expected after its address is gone.
	lateFor = time.Hour
)

// reservation is one claim of an address: the next claim of the same address has another
// revision.
type reservation struct {
	claimKey
	rev int64
}

// sweepReserved frees addresses that have been reserved for too long, until ctx or the term
// ends.
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

// staleReservations returns when each reservation was first seen, and those that are too
// old. Addresses that the manager of a swarm may hold, in the networks holders, are not
// among them.
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

// firstSeen is when a record was first seen in its current form: now, if it was not before.
func firstSeen(seen map[reservation]time.Time, r reservation, now time.Time) time.Time {
	if since, known := seen[r]; known {
		return since
	}
	return now
}

// overdueReleases returns when each expected release was first seen, and those that are too
// old.
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

// forgetReleases no longer expects releases, unless one has arrived or been added since.
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
