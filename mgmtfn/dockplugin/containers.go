package dockplugin

import (
	"context"
	"maps"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/delta"
	"github.com/contiv/netplugin/utils/dockerd"
)

// Events netmaster knows.
const (
	eventStart = "start"
	eventDie   = "die"
)

// containers tells netmaster which containers run, one endpoint at a time: their labels
// make them providers of services, and their names are resolved by DNS.
type containers struct {
	s    *Server
	told *delta.Map[string, masterapi.UpdateEndpointRequest] // by endpoint id
}

func newContainers(s *Server) *containers {
	same := func(a, b masterapi.UpdateEndpointRequest) bool {
		return a.ContainerID == b.ContainerID && a.EPCommonName == b.EPCommonName && a.IPAddress == b.IPAddress &&
			a.Tenant == b.Tenant && a.Network == b.Network && maps.Equal(a.Labels, b.Labels)
	}
	return &containers{s: s, told: delta.New[string](same)}
}

// pass reads which containers run and reports every difference. It returns the endpoints
// they have.
func (w *containers) pass(ctx context.Context) (alive map[string]bool, err error) {
	list, err := w.s.cfg.Engine.Containers(ctx)
	if err != nil {
		return nil, err
	}
	want := map[string]masterapi.UpdateEndpointRequest{}
	alive = map[string]bool{}
	runs := map[string]bool{} // containers, by id
	for _, c := range list {
		runs[c.ID] = true
		for _, at := range c.Attachments {
			alive[at.EndpointID] = true
			if r, ok, _ := w.s.dir.get(at.NetworkID); ok {
				want[at.EndpointID] = started(c, at, r.Ref())
			}
		}
	}
	w.told.ReplaceDesired(want)
	for c := range w.told.Pending() {
		if err := w.tell(ctx, c, runs); err != nil {
			w.s.cfg.Log.WithError(err).WithField("endpoint", c.Key).Warn("cannot report a container to netmaster; retrying")
			return alive, err
		}
		w.told.Applied(c)
	}
	return alive, nil
}

func started(c dockerd.Container, at dockerd.Attachment, p state.NetworkRef) masterapi.UpdateEndpointRequest {
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

// tell reports one difference. A container that was only disconnected keeps running.
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
