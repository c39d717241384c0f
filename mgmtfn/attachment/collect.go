package attachment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/state"
)

// collectInterval is how often endpoints are compared with what is attached.
const collectInterval = 5 * time.Minute

// ID names one attachment.
type ID struct{ ContainerID, IfName string }

// Keep removes every attachment of this host that is not among those (CNI GC). Ports
// without namespace are not its business: their runtime moves interfaces itself. It
// goes on after a failure and reports them together.
func (a *Attacher) Keep(ctx context.Context, those []ID) error {
	valid := map[ID]bool{}
	for _, v := range those {
		valid[v] = true
	}
	var failed []error
	for _, at := range a.cfg.Ports.Attachments() {
		if at.ContainerID == "" || at.Netns == "" || valid[ID{at.ContainerID, at.IfName}] {
			continue
		}
		if err := a.Delete(ctx, at.ContainerID, at.IfName); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", at.ContainerID, at.IfName, err))
		}
	}
	return errors.Join(failed...)
}

// Run tells netmaster what it could not be told, and collects what a crash has left
// behind, until ctx ends.
func (a *Attacher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.pending.Run(ctx) })
	g.Go(func() error { return a.collect(ctx) })
	return g.Wait()
}

// collect removes, from time to time, what a crash has left behind: endpoints of this
// host that no port stands for, and ports whose container has gone. Both must be found
// so twice in a row: an endpoint exists a moment before its port does.
func (a *Attacher) collect(ctx context.Context) error {
	suspects := map[string]bool{}
	tick := time.NewTicker(collectInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if a.cfg.Agent.Ready() != nil || a.cfg.Ports.Ready() != nil {
			continue
		}
		suspects = a.collectOnce(ctx, suspects)
	}
}

// collectOnce removes what was suspected before and still is, and returns what is
// suspected now.
func (a *Attacher) collectOnce(ctx context.Context, suspects map[string]bool) map[string]bool {
	now := map[string]bool{}
	for id, orphan := range a.orphans() {
		if !suspects[id] {
			now[id] = true
			continue
		}
		release, err := a.turns.Lock(ctx, orphan.name)
		if err != nil {
			continue
		}
		if _, still := a.orphans()[id]; !still { // attached, or gone, while waiting
			release()
			continue
		}
		if err := a.remove(ctx, orphan.Place, orphan.name); err != nil {
			a.cfg.Log.WithError(err).WithField("endpoint", id).Warn("cannot remove a left-over endpoint")
			now[id] = true
		} else {
			a.cfg.Log.WithField("endpoint", id).Info("left-over endpoint removed")
		}
		release()
	}
	return now
}

// orphans lists endpoints of containers that are not there.
func (a *Attacher) orphans() map[string]placedName {
	out := map[string]placedName{}
	attached := map[string]bool{}
	for _, at := range a.cfg.Ports.Attachments() {
		attached[at.EndpointID] = true
		if at.Netns == "" {
			continue
		}
		if _, err := os.Stat(at.Netns); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		for id, p := range a.existing(at.ContainerID, at.IfName) {
			out[id] = p
		}
	}
	for _, rec := range a.cfg.Agent.LocalEndpoints() {
		if attached[rec.ID] || rec.EndpointID == "" || rec.EndpointID == a.cfg.HostLabel {
			continue
		}
		if p, ok := a.placeOf(rec.NetID); ok && rec.ID == state.EndpointID(rec.NetID, rec.EndpointID) {
			out[rec.ID] = placedName{p, rec.EndpointID}
		}
	}
	return out
}
