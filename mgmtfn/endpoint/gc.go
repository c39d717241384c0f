package endpoint

import (
	"context"
	"time"
)

// Collector removes the orphans of this host. Create it with NewCollector. It is not safe
// for concurrent use.
type Collector struct {
	m     *Manager
	now   func() time.Time
	since map[string]time.Time // when an endpoint was first seen as an orphan, by id
}

// NewCollector creates a Collector of a Manager's endpoints.
func NewCollector(m *Manager) *Collector {
	return &Collector{m: m, now: time.Now, since: map[string]time.Time{}}
}

// Rules determine what a pass of a Collector removes.
type Rules struct {
	// Alive reports whether an endpoint is in use.
	Alive func(Endpoint) bool
	// Wait returns how much longer an endpoint must stay that has been an orphan for a
	// time: endpoints exist shortly before they are known to be in use, and runtimes get
	// time to remove what they end. It is due at 0.
	Wait func(e Endpoint, orphaned time.Duration) time.Duration
	// Within limits the removal of one endpoint; 0: as long as ctx.
	Within time.Duration
	// Retry is the wait after a removal has failed.
	Retry time.Duration
}

// Orphans returns the endpoints of this host that are not alive, by id.
func (m *Manager) Orphans(alive func(Endpoint) bool) map[string]Endpoint {
	out := m.All()
	for id, e := range out {
		// netmaster cannot be told about one without port and network.
		if alive(e) || e.Port == nil && e.Network.Network == "" {
			delete(out, id)
		}
	}
	return out
}

// Pass removes the orphans that are due. It returns the remaining ones, and when the first
// of them is due, if any.
func (c *Collector) Pass(ctx context.Context, r Rules) (left []Endpoint, next time.Duration) {
	since, now := map[string]time.Time{}, c.now()
	for id, e := range c.m.Orphans(r.Alive) {
		first, seen := c.since[id]
		if !seen {
			first = now
		}
		wait := r.Wait(e, now.Sub(first))
		if wait <= 0 {
			gone, err := c.collect(ctx, e, r)
			if gone {
				continue
			}
			c.m.cfg.Log.WithError(err).WithField("endpoint", id).Warnf("cannot remove an orphaned endpoint; retrying in %s", r.Retry)
			wait = r.Retry
		}
		since[id] = first
		left = append(left, e)
		if next == 0 || wait < next {
			next = wait
		}
	}
	c.since = since
	return left, next
}

// collect removes an orphan, unless it is gone or in use by now.
func (c *Collector) collect(ctx context.Context, e Endpoint, r Rules) (gone bool, err error) {
	if r.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Within)
		defer cancel()
	}
	release, err := c.m.Lock(ctx, e.Name)
	if err != nil {
		return false, err
	}
	defer release()
	now, still := c.m.Named(e.Name)[e.ID]
	if !still || r.Alive(now) {
		return true, nil
	}
	if err := c.m.Remove(ctx, now); err != nil {
		return false, err
	}
	c.m.cfg.Log.WithField("endpoint", e.ID).Info("orphaned endpoint removed")
	return true, nil
}
