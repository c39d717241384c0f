package dockplugin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// resync is how often everything is compared although nothing has been heard of.
const resync = 30 * time.Second

// engineLoop follows the Engine: it learns its networks, keeps them equal to what is
// wanted, and tells netmaster of its containers. Only the loop calls the Engine.
type engineLoop struct {
	s          *Server
	kick       chan struct{}
	networks   *networks
	containers *containers
	collector  *collector
	down       time.Time // since when the Engine does not answer; zero while it does
}

func newEngineLoop(s *Server) *engineLoop {
	return &engineLoop{s: s, kick: make(chan struct{}, 1), networks: newNetworks(s), containers: newContainers(s), collector: newCollector(s)}
}

// wake has everything compared soon.
func (l *engineLoop) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run works until ctx ends. An Engine that is down is waited for.
func (l *engineLoop) run(ctx context.Context) error {
	done := make(chan struct{})
	go func() { defer close(done); l.watch(ctx) }()
	defer func() { <-done }()
	again := retry.New(250*time.Millisecond, 10*time.Second)
	for ctx.Err() == nil {
		t, _, known, changed := l.s.cfg.Agent.Topology()
		next := resync
		if known {
			l.s.given.found(l.s.cfg.Agent.LocalEndpoints())
			var err error
			if next, err = l.pass(ctx); err != nil {
				next = again.Next()
			} else {
				again.Reset()
			}
		}
		l.wait(ctx, t, known, changed, next)
	}
	return ctx.Err()
}

// wait returns when the loop is woken, when there are other networks or groups than those
// of t or they have become known, or after a while. Most of what changes in the agent is
// none of it.
func (l *engineLoop) wait(ctx context.Context, t docknet.Topology, known bool, changed <-chan struct{}, patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
			return
		case <-timer.C:
			return
		case <-changed:
			var now docknet.Topology
			was := known
			now, _, known, changed = l.s.cfg.Agent.Topology()
			if known != was || !slices.Equal(now.Networks, t.Networks) || !slices.Equal(now.Groups, t.Groups) {
				return
			}
		}
	}
}

// pass compares everything once, and returns after how long it is to be done again. A
// docker network that cannot be made does not keep containers waiting.
func (l *engineLoop) pass(ctx context.Context) (next time.Duration, err error) {
	failed := l.networks.pass(ctx)
	if errs.Is(failed, errs.Unavailable) || errs.Is(failed, errs.Timeout) {
		return 0, failed
	}
	alive, err := l.containers.pass(ctx)
	if err != nil {
		return 0, errors.Join(failed, err)
	}
	return l.collector.pass(ctx, alive), failed
}

// answered notes whether the Engine answers; err is what became of the last request. What
// netmaster has been told before, perhaps by an agent that was here before this one, holds
// for the time of grace.
func (l *engineLoop) answered(err error) {
	grace := l.s.cfg.EngineGrace
	if grace == 0 {
		grace = DefaultEngineGrace
	}
	switch {
	case !errs.Is(err, errs.Unavailable) && !errs.Is(err, errs.Timeout):
		l.down = time.Time{}
		l.s.dir.setEngine(engineUp)
	case l.down.IsZero():
		l.down = time.Now()
		if errs.Is(err, errs.Timeout) { // of one that is gone the watch tells
			l.s.cfg.Log.WithError(err).Warn("the Docker Engine does not answer; retrying")
		}
	case time.Since(l.down) >= grace:
		l.s.dir.setEngine(engineDown)
	}
}

// watch wakes the loop when something happens in the Engine.
func (l *engineLoop) watch(ctx context.Context) {
	said := false
	again := retry.New(250*time.Millisecond, time.Second)
	for ctx.Err() == nil {
		err := l.s.cfg.Engine.Watch(ctx, func() {
			said = false
			again.Reset()
			l.wake()
		})
		if ctx.Err() != nil {
			return
		}
		log := l.s.cfg.Log.WithError(err)
		if !said && errs.Is(err, errs.Unavailable) {
			log.Warn("the Docker Engine is down; waiting for it")
		} else if !said {
			log.Warn("cannot follow the events of the Docker Engine; retrying")
		}
		said = true
		again.Wait(ctx)
	}
}
