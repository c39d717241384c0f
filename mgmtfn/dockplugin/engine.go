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

// resync is how often everything is compared although there was no event.
const resync = 30 * time.Second

// engineLoop follows the Engine: it reads its networks, keeps them equal to the wanted
// ones, and tells netmaster of its containers. Only the loop calls the Engine.
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

// run works until ctx ends. It waits for an Engine that is down.
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

// wait returns when the loop is woken, when networks or groups differ from t or have become
// known, or after a while. Most changes in the agent are not about these.
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

// pass compares everything once, and returns when to do it again. A docker network that
// cannot be created does not keep containers waiting.
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

// answered records whether the Engine answers; err is the result of the last request. What
// netmaster was told before, possibly by an earlier agent, stays valid for the grace
// period.
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
		if errs.Is(err, errs.Timeout) { // an Engine that has ended is noticed by the watch
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
