package dockplugin

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/contiv/netplugin/mgmtfn/endpoint"
)

// An Engine records an endpoint as soon as the call that created it has returned. After
// this time without record it counts as forgotten:
const unnotedFor = 15 * time.Second

// unsettled is the wait before retrying a removal that has failed.
const unsettled = time.Second

// collector removes the endpoints of this host that no container has: what remains when
// Engine, agent or host ended at the wrong moment.
type collector struct {
	s       *Server
	orphans *endpoint.Collector

	mu    sync.Mutex
	ended map[string]struct{} // those the Engine has deleted, by the Engine's id
}

func newCollector(s *Server) *collector {
	return &collector{s: s, orphans: endpoint.NewCollector(s.endpoints), ended: map[string]struct{}{}}
}

// end removes an endpoint as soon as possible.
func (c *collector) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[name] = struct{}{}
}

// begin cancels end.
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

// pass removes what is due and returns when something may be due again. running are the
// endpoints of running containers, by the Engine's ids.
func (c *collector) pass(ctx context.Context, running map[string]bool) time.Duration {
	if c.s.cfg.Agent.Ready() != nil || c.s.cfg.Ports.Ready() != nil {
		return unsettled
	}
	noted := sync.OnceValues(func() (map[string]bool, error) { return c.noted(ctx) })
	left, next := c.orphans.Pass(ctx, endpoint.Rules{
		Alive: func(e endpoint.Endpoint) bool { return c.alive(e, running) },
		Wait: func(e endpoint.Endpoint, orphaned time.Duration) time.Duration {
			return c.wait(e.Name, orphaned, noted)
		},
		Within: callTimeout, Retry: unsettled,
	})
	names := map[string]bool{}
	for _, e := range left {
		names[e.Name] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.ended, func(name string, _ struct{}) bool { return !names[name] })
	if len(left) == 0 {
		return resync
	}
	return min(next, resync)
}

// alive reports whether a container has an endpoint; running are the endpoints of running
// containers, by the Engine's ids. An Engine may still show a container whose endpoint it
// has deleted. Ports in a network namespace are those of other runtimes: the Engine moves
// interfaces itself.
func (c *collector) alive(e endpoint.Endpoint, running map[string]bool) bool {
	return e.Port != nil && e.Port.Netns != "" || running[e.Name] && !c.hasEnded(e.Name)
}

// wait returns how long an endpoint that has been without container for a time must stay:
// not at all if the Engine has deleted it; for a short time if the Engine does not know it;
// for the grace period if a container may be about to start with it.
func (c *collector) wait(name string, alone time.Duration, noted func() (map[string]bool, error)) time.Duration {
	grace := c.s.cfg.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	if c.hasEnded(name) {
		return 0
	}
	if alone < min(unnotedFor, grace) {
		return min(unnotedFor, grace) - alone
	}
	if all, err := noted(); err == nil && !all[name] {
		return 0
	}
	return grace - alone
}

// noted asks the Engine for every endpoint in our networks, started or not.
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
