package attachment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/state"
)

// How often it is looked for notes; how often, from the agent's start on, endpoints are
// compared with what is attached; and how long after that suspects are looked at again.
const (
	noticeInterval  = 2 * time.Second
	collectInterval = 5 * time.Minute
	confirmPause    = 30 * time.Second
)

// ID names one attachment.
type ID struct{ ContainerID, IfName string }

// Keep removes every attachment of this host that is not among those (CNI GC). It is about
// the attachments of one network configuration: those known to be of others stay, and so
// do ports without namespace, whose runtime moves interfaces itself. It goes on after a
// failure and reports them together.
func (a *Attacher) Keep(ctx context.Context, config string, those []ID) error {
	valid := map[ID]bool{}
	for _, v := range those {
		valid[v] = true
	}
	var failed []error
	for _, at := range a.cfg.Ports.Attachments() {
		if at.ContainerID == "" || at.Netns == "" || valid[ID{at.ContainerID, at.IfName}] {
			continue
		}
		if config != "" && at.Config != "" && at.Config != config {
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

// collect makes true, from time to time, what plugins could only take note of, and
// removes what a crash has left behind.
func (a *Attacher) collect(ctx context.Context) error {
	suspects, due := map[string]bool{}, time.Time{}
	tick := time.NewTicker(noticeInterval)
	defer tick.Stop()
	for {
		if a.Status() == nil {
			a.takeNotice(ctx)
			if now := time.Now(); now.After(due) {
				suspects = a.collectOnce(ctx, suspects)
				due = now.Add(collectInterval)
				if len(suspects) > 0 {
					due = now.Add(confirmPause)
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// takeNotice removes the attachments that there are notes about.
func (a *Attacher) takeNotice(ctx context.Context) {
	if a.cfg.Notes == "" {
		return
	}
	notes, err := cni.Notes(a.cfg.Notes)
	if err != nil {
		a.cfg.Log.WithError(err).Warn("cannot read the notes of deletions")
	}
	for _, n := range notes {
		if err := a.deleteNoted(ctx, n); err != nil {
			a.cfg.Log.WithError(err).WithField("container", n.ContainerID).Warn("a deletion is tried again later")
		}
	}
}

func (a *Attacher) deleteNoted(ctx context.Context, n cni.Note) error {
	release, err := a.turns.Lock(ctx, Name(n.ContainerID, n.IfName))
	if err != nil {
		return err
	}
	defer release()
	// The note goes first: one that is left while this works is another one. That of a
	// container which was attached meanwhile is gone.
	if was, err := a.dropNote(n.ContainerID, n.IfName); !was || err != nil {
		return err
	}
	if err := a.delete(ctx, n.ContainerID, n.IfName); err != nil {
		return errors.Join(err, n.Leave(a.cfg.Notes))
	}
	return nil
}

func (a *Attacher) dropNote(containerID, ifName string) (was bool, err error) {
	if a.cfg.Notes == "" {
		return false, nil
	}
	return cni.Note{ContainerID: containerID, IfName: ifName}.Drop(a.cfg.Notes)
}

// collectOnce removes endpoints of this host that no port stands for, and ports whose
// container or pod has gone, if they were suspected of that before; it returns who is
// suspected now. Twice they must be found so: an endpoint exists a moment before its port
// does, and runtimes get their time to detach what they end.
func (a *Attacher) collectOnce(ctx context.Context, suspects map[string]bool) map[string]bool {
	now := map[string]bool{}
	podless := a.podless(ctx)
	for id, orphan := range a.orphans(podless) {
		if !suspects[id] {
			now[id] = true
			continue
		}
		release, err := a.turns.Lock(ctx, orphan.name)
		if err != nil {
			continue
		}
		if _, still := a.orphans(podless)[id]; !still { // attached, or gone, while waiting
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

// podless lists the attachments whose pods are gone, by endpoint. Their pods were there
// when they were attached: who is missed after the attachments were read has gone since.
func (a *Attacher) podless(ctx context.Context) map[string]bool {
	out := map[string]bool{}
	if a.cfg.Pods == nil {
		return out
	}
	attachments := a.cfg.Ports.Attachments()
	if !slices.ContainsFunc(attachments, func(at drivers.Attachment) bool { return at.PodUID != "" }) {
		return out
	}
	living, err := a.cfg.Pods(ctx)
	if err != nil {
		a.cfg.Log.WithError(err).Info("attachments are not compared with pods now")
		return out
	}
	for _, at := range attachments {
		if at.PodUID != "" && !living[at.PodUID] {
			out[at.EndpointID] = true
		}
	}
	return out
}

// orphans lists endpoints of containers that are not there, and those of podless ones.
func (a *Attacher) orphans(podless map[string]bool) map[string]placedName {
	out := map[string]placedName{}
	attached := map[string]bool{}
	for _, at := range a.cfg.Ports.Attachments() {
		attached[at.EndpointID] = true
		if at.Netns == "" {
			continue
		}
		if _, err := os.Stat(at.Netns); !errors.Is(err, os.ErrNotExist) && !podless[at.EndpointID] {
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
