package attachment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
)

// How often notes are read; how often endpoints are compared with what is attached; and how
// long an endpoint must be an orphan before it is removed.
const (
	noteInterval    = 2 * time.Second
	collectInterval = 5 * time.Minute
	orphanGrace     = 30 * time.Second
)

// ID identifies an attachment.
type ID struct{ ContainerID, IfName string }

// GC removes every attachment of this host that is not in a list of valid ones (CNI GC). It
// is about the attachments of one network configuration: those known to be of others stay,
// and so do ports without namespace, whose runtime moves interfaces itself. It continues
// after a failure and reports all failures together.
func (a *Attacher) GC(ctx context.Context, config string, list []ID) error {
	valid := map[ID]bool{}
	for _, v := range list {
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

// Run delivers queued deletions to netmaster and removes orphans until ctx ends.
func (a *Attacher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.endpoints.Run(ctx) })
	g.Go(func() error { return a.collect(ctx) })
	return g.Wait()
}

// collect periodically carries out the deletions that plugins have left notes of, and
// removes orphans.
func (a *Attacher) collect(ctx context.Context) error {
	due := time.Time{}
	tick := time.NewTicker(noteInterval)
	defer tick.Stop()
	for {
		if a.Status() == nil {
			a.readNotes(ctx)
			if now := time.Now(); now.After(due) {
				_, next := a.collectOrphans(ctx)
				due = now.Add(next)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// readNotes carries out the deletions of which there are notes.
func (a *Attacher) readNotes(ctx context.Context) {
	if a.cfg.Notes == "" {
		return
	}
	notes, err := cni.Notes(a.cfg.Notes)
	if err != nil {
		a.cfg.Log.WithError(err).Warn("cannot read the notes of deletions; retrying")
	}
	for _, n := range notes {
		if err := a.deleteNoted(ctx, n); err != nil {
			a.cfg.Log.WithError(err).WithField("container", n.ContainerID).Warn("cannot detach a container as noted by its CNI plugin; retrying")
		}
	}
}

func (a *Attacher) deleteNoted(ctx context.Context, n cni.Note) error {
	release, err := a.endpoints.Lock(ctx, endpoint.Name(n.ContainerID, n.IfName))
	if err != nil {
		return err
	}
	defer release()
	// The note is removed first: a note left during the deletion is a new one. The note
	// of a container that was attached in the meantime has been removed.
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

// collectOrphans removes endpoints of this host that have no port, and ports whose
// container or pod no longer exists, once they have been so for orphanGrace: an endpoint
// exists shortly before its port does, and runtimes need time to detach what they end. It
// returns the remaining orphans, and when to check again.
func (a *Attacher) collectOrphans(ctx context.Context) (left []endpoint.Endpoint, next time.Duration) {
	podless := a.podless(ctx)
	left, next = a.orphans.Pass(ctx, endpoint.Rules{
		Alive: func(e endpoint.Endpoint) bool { return alive(e) && !podless[e.ID] },
		Wait:  func(_ endpoint.Endpoint, orphaned time.Duration) time.Duration { return orphanGrace - orphaned },
		Retry: orphanGrace,
	})
	return left, cmp.Or(next, collectInterval)
}

// alive reports whether an endpoint has a port, and the port's container its namespace.
// Ports without namespace belong to runtimes that move interfaces themselves.
func alive(e endpoint.Endpoint) bool {
	if e.Port == nil || e.Port.Netns == "" {
		return e.Port != nil
	}
	_, err := os.Stat(e.Port.Netns)
	return !errors.Is(err, os.ErrNotExist)
}

// podless lists the attachments whose pods no longer exist, by endpoint. The pods existed
// when they were attached, so a pod that is missing after the attachments were read has
// been deleted.
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
		a.cfg.Log.WithError(err).Info("cannot list the pods of this node; looking for orphans by network namespace only")
		return out
	}
	for _, at := range attachments {
		if at.PodUID != "" && !living[at.PodUID] {
			out[at.EndpointID] = true
		}
	}
	return out
}
