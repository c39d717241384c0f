package dockplugin

import (
	"context"
	"maps"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/dockerd"
)

// Events netmaster knows.
const (
	eventStart = "start"
	eventDie   = "die"
)

// containers tells netmaster of the containers that run, one endpoint at a time: their
// labels make them providers of services, their names can be asked for by DNS. And it
// removes endpoints that no container has.
type containers struct {
	s    *Server
	told *delta.Map[string, masterapi.UpdateEndpointRequest] // by endpoint id

	suspects map[string]time.Time // since when no container has an endpoint, by endpoint id
}

func newContainers(s *Server) *containers {
	same := func(a, b masterapi.UpdateEndpointRequest) bool {
		return a.ContainerID == b.ContainerID && a.EPCommonName == b.EPCommonName && a.IPAddress == b.IPAddress &&
			a.Tenant == b.Tenant && a.Network == b.Network && maps.Equal(a.Labels, b.Labels)
	}
	return &containers{s: s, told: delta.New[string](same), suspects: map[string]time.Time{}}
}

// pass reads which containers run and settles every difference.
func (w *containers) pass(ctx context.Context) error {
	list, err := w.s.cfg.Engine.Containers(ctx)
	if err != nil {
		return err
	}
	want := map[string]masterapi.UpdateEndpointRequest{}
	alive := map[string]bool{}
	runs := map[string]bool{} // containers, by id
	for _, c := range list {
		runs[c.ID] = true
		for _, at := range c.Attachments {
			alive[at.EndpointID] = true
			if r, ok, _ := w.s.dir.get(at.NetworkID); ok {
				want[at.EndpointID] = started(c, at, r.Place())
			}
		}
	}
	w.told.ReplaceDesired(want)
	for c := range w.told.Pending() {
		if err := w.tell(ctx, c, runs); err != nil {
			w.s.cfg.Log.WithError(err).WithField("endpoint", c.Key).Warn("netmaster cannot be told of a container; retrying")
			return err
		}
		w.told.Applied(c)
	}
	w.collect(ctx, alive)
	return nil
}

func started(c dockerd.Container, at dockerd.Attachment, p docknet.Place) masterapi.UpdateEndpointRequest {
	req := masterapi.UpdateEndpointRequest{
		ContainerID: c.ID, Labels: c.Labels, Tenant: p.Tenant, Network: p.Network,
		Event: eventStart, EndpointID: at.EndpointID, EPCommonName: c.Name,
	}
	if p.Group != "" {
		req.Network = p.Group
	}
	if at.IPv4.IsValid() {
		req.IPAddress = at.IPv4.String()
	}
	return req
}

// tell reports one difference. A container that was only disconnected lives on.
func (w *containers) tell(ctx context.Context, c delta.Change[string, masterapi.UpdateEndpointRequest], runs map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if c.Op != delta.Remove {
		return w.s.cfg.Master.UpdateEndpoint(ctx, c.Want)
	}
	if runs[c.Have.ContainerID] {
		return nil
	}
	return w.s.cfg.Master.UpdateEndpoint(ctx, masterapi.UpdateEndpointRequest{ContainerID: c.Have.ContainerID, Event: eventDie})
}

// collect removes the endpoints of this host that no container has had for a while: what
// is left after the Engine, or the agent, was killed at the wrong moment.
func (w *containers) collect(ctx context.Context, alive map[string]bool) {
	if w.s.cfg.Agent.Ready() != nil || w.s.cfg.Ports.Ready() != nil {
		return
	}
	grace := w.s.cfg.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	now := time.Now()
	since := map[string]time.Time{}
	for id, o := range w.orphans(alive) {
		first, seen := w.suspects[id]
		if !seen {
			first = now
		}
		since[id] = first
		if now.Sub(first) < grace {
			continue
		}
		if err := w.removeOrphan(ctx, o); err != nil {
			w.s.cfg.Log.WithError(err).WithField("endpoint", id).Warn("cannot remove a left-over endpoint")
			continue
		}
		w.s.cfg.Log.WithField("endpoint", id).Info("left-over endpoint removed")
		delete(since, id)
	}
	w.suspects = since
}

type orphan struct {
	place docknet.Place
	name  string
}

func (w *containers) removeOrphan(ctx context.Context, o orphan) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	release, err := w.s.turns.Lock(ctx, o.name)
	if err != nil {
		return err
	}
	defer release()
	return w.s.remove(ctx, o.place, o.name)
}

// orphans lists records and ports of this host, by endpoint id, whose endpoints no
// container has. Ports in a network namespace are those of other runtimes: the Engine
// moves interfaces itself.
func (w *containers) orphans(alive map[string]bool) map[string]orphan {
	out, others := map[string]orphan{}, map[string]bool{}
	for _, at := range w.s.cfg.Ports.Attachments() {
		if at.Netns != "" {
			others[at.EndpointID] = true
		}
	}
	for _, rec := range w.s.cfg.Agent.LocalEndpoints() {
		if others[rec.ID] || rec.EndpointID == "" || rec.EndpointID == w.s.cfg.HostLabel || alive[rec.EndpointID] || rec.ID != state.EndpointID(rec.NetID, rec.EndpointID) {
			continue
		}
		out[rec.ID] = orphan{w.s.placeOf(rec.NetID, rec.ServiceName), rec.EndpointID}
	}
	for _, at := range w.s.cfg.Ports.Attachments() {
		if _, listed := out[at.EndpointID]; listed || others[at.EndpointID] || at.ContainerID == "" || alive[at.ContainerID] {
			continue
		}
		for id, p := range w.s.placesOf(at.ContainerID) {
			out[id] = orphan{p, at.ContainerID}
		}
	}
	return out
}
