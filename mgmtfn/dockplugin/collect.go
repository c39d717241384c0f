package dockplugin

import (
	"context"
	"sync"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// An Engine notes an endpoint the moment the call that made it has returned. For how long
// it may be without before it counts as forgotten:
const unnotedFor = 15 * time.Second

// unsettled is how often is looked again at what cannot be removed now.
const unsettled = time.Second

// collector removes the endpoints of this host that no container has: what is left when
// Engine, agent or host ended at the wrong moment.
type collector struct {
	s     *Server
	since map[string]time.Time // when no container was seen to have an endpoint first, by endpoint id

	mu    sync.Mutex
	ended map[string]struct{} // those the Engine has deleted, by the Engine's id
}

func newCollector(s *Server) *collector {
	return &collector{s: s, since: map[string]time.Time{}, ended: map[string]struct{}{}}
}

// end has an endpoint taken down as soon as that can be done.
func (c *collector) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[name] = struct{}{}
}

// begin takes end back.
func (c *collector) begin(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ended, name)
}

func (c *collector) hasEnded(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.ended[name]
	return ok
}

// pass removes what is due and returns after how long something may be again. alive are
// the endpoints of containers that run, by the Engine's ids.
func (c *collector) pass(ctx context.Context, alive map[string]bool) (next time.Duration) {
	if c.s.cfg.Agent.Ready() != nil || c.s.cfg.Ports.Ready() != nil {
		return unsettled
	}
	next = resync
	now := time.Now()
	noted := sync.OnceValues(func() (map[string]bool, error) { return c.noted(ctx) })
	since, left := map[string]time.Time{}, map[string]struct{}{}
	for id, o := range c.orphans(alive) {
		first, seen := c.since[id]
		if !seen {
			first = now
		}
		wait := c.wait(o, now.Sub(first), noted)
		if wait <= 0 {
			err := c.remove(ctx, o)
			if err == nil {
				c.s.cfg.Log.WithField("endpoint", id).Info("left-over endpoint removed")
				continue
			}
			c.s.cfg.Log.WithError(err).WithField("endpoint", id).Warn("cannot remove a left-over endpoint; retrying")
			wait = unsettled
		}
		since[id], left[o.name] = first, struct{}{}
		next = min(next, wait)
	}
	c.since = since
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.ended {
		if _, ok := left[name]; !ok {
			delete(c.ended, name)
		}
	}
	return next
}

// wait says how long an endpoint that has been without a container for a time must stay:
// not at all when the Engine has deleted it; a little when the Engine knows nothing of
// it; for the grace when a container may be about to start with it.
func (c *collector) wait(o orphan, alone time.Duration, noted func() (map[string]bool, error)) time.Duration {
	grace := c.s.cfg.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	if c.hasEnded(o.name) {
		return 0
	}
	if alone < min(unnotedFor, grace) {
		return min(unnotedFor, grace) - alone
	}
	if all, err := noted(); err == nil && !all[o.name] {
		return 0
	}
	return grace - alone
}

// noted asks the Engine for every endpoint it has, started or not, in networks of ours.
func (c *collector) noted(ctx context.Context) (map[string]bool, error) {
	list, err := c.s.cfg.Engine.Networks(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, n := range list {
		if n.Driver != c.s.cfg.Driver {
			continue
		}
		names, err := c.s.cfg.Engine.Endpoints(ctx, n.ID)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			all[name] = true
		}
	}
	return all, nil
}

type orphan struct {
	place docknet.Place
	name  string // the Engine's id
}

func (c *collector) remove(ctx context.Context, o orphan) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	release, err := c.s.turns.Lock(ctx, o.name)
	if err != nil {
		return err
	}
	defer release()
	return c.s.remove(ctx, o.place, o.name)
}

// orphans lists records and ports of this host, by endpoint id, whose endpoints no
// container has. An Engine may still show a container whose endpoint it has deleted. Ports
// in a network namespace are those of other runtimes: the Engine moves interfaces itself.
func (c *collector) orphans(alive map[string]bool) map[string]orphan {
	out, others := map[string]orphan{}, map[string]bool{}
	for _, at := range c.s.cfg.Ports.Attachments() {
		if at.Netns != "" {
			others[at.EndpointID] = true
		}
	}
	kept := func(id, name string) bool { return name == "" || others[id] || alive[name] && !c.hasEnded(name) }
	for _, rec := range c.s.cfg.Agent.LocalEndpoints() {
		if kept(rec.ID, rec.EndpointID) || rec.EndpointID == c.s.cfg.HostLabel || rec.ID != state.EndpointID(rec.NetID, rec.EndpointID) {
			continue
		}
		out[rec.ID] = orphan{c.s.placeOf(rec.NetID, rec.ServiceName), rec.EndpointID}
	}
	for _, at := range c.s.cfg.Ports.Attachments() {
		if _, listed := out[at.EndpointID]; listed || kept(at.EndpointID, at.ContainerID) {
			continue
		}
		for id, p := range c.s.placesOf(at.ContainerID) {
			out[id] = orphan{p, at.ContainerID}
		}
	}
	return out
}
