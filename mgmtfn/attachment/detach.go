package attachment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Delete detaches a container; what is gone already is no error. Neither the namespace
// nor the pod need exist any more. Without a view of store and switch nobody can tell
// what is gone: it is to be asked again then.
func (a *Attacher) Delete(ctx context.Context, containerID, ifName string) error {
	if containerID == "" {
		return failed(StepRequest, fmt.Errorf("no container id given"))
	}
	release, err := a.turns.Lock(ctx, Name(containerID, ifName))
	if err != nil {
		return failed(StepEndpoint, err)
	}
	defer release()
	a.awaitView(ctx)
	return a.delete(ctx, containerID, ifName)
}

// viewInterval is how often it is asked again for store and switch, which have no event.
const viewInterval = 20 * time.Millisecond

// awaitView gives store and switch, which may just be restarting, the time to come back:
// a runtime that has detached a container expects that nothing of it is left.
func (a *Attacher) awaitView(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Patience)
	defer cancel()
	again := time.NewTicker(viewInterval)
	defer again.Stop()
	for a.Status() != nil {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// delete is Delete for who has the turn.
func (a *Attacher) delete(ctx context.Context, containerID, ifName string) error {
	if err := a.Status(); err != nil {
		return failed(StepInterface, errs.Wrap(errs.Unavailable, err))
	}
	for id, place := range a.existing(containerID, ifName) {
		if err := a.remove(ctx, place.Place, place.name); err != nil {
			return failed(StepDetach, err)
		}
		a.cfg.Log.WithField("endpoint", id).Info("container detached")
	}
	return nil
}

// undo leaves nothing of a failed attachment. When the caller's time is over it waits for
// nobody: netmaster, which may be why, is told in the background.
func (a *Attacher) undo(caller context.Context, place Place, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), 5*time.Second)
	defer cancel()
	take := a.remove
	if caller.Err() != nil {
		take = a.removeLater
	}
	if err := take(ctx, place, name); err != nil {
		a.cfg.Log.WithError(err).WithField("endpoint", state.EndpointID(place.NetworkID(), name)).Warn("a failed attachment is removed later")
	}
}

// unplug takes an endpoint's port away, and returns what netmaster is to be told of it.
func (a *Attacher) unplug(ctx context.Context, place Place, name string) (id string, req masterapi.DeleteEndpointRequest, err error) {
	id = state.EndpointID(place.NetworkID(), name)
	if err := a.cfg.Ports.Detach(ctx, id); err != nil {
		return id, req, err
	}
	a.portsChanged()
	return id, masterapi.DeleteEndpointRequest{TenantName: place.Tenant, NetworkName: place.Network, ServiceName: place.Group, EndpointID: name}, nil
}

func (a *Attacher) removeLater(ctx context.Context, place Place, name string) error {
	id, req, err := a.unplug(ctx, place, name)
	if err == nil {
		a.pending.Add(id, req)
	}
	return err
}

func (a *Attacher) remove(ctx context.Context, place Place, name string) error {
	id, req, err := a.unplug(ctx, place, name)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err = a.cfg.Master.DeleteEndpoint(short, req)
	if err == nil {
		return nil
	}
	a.pending.Add(id, req)
	a.cfg.Log.WithError(err).WithField("endpoint", id).Warn("netmaster cannot be told of a deletion now; retrying in the background")
	return nil
}

type placedName struct {
	Place
	name string
}

// existing finds what there is of an attachment: ports labelled with it, and endpoint
// records of this host.
func (a *Attacher) existing(containerID, ifName string) map[string]placedName {
	name := Name(containerID, ifName)
	out := map[string]placedName{}
	for _, rec := range a.cfg.Agent.LocalEndpoints() {
		if rec.EndpointID == name {
			if p, ok := a.placeOf(rec.NetID); ok {
				out[rec.ID] = placedName{p, name}
			}
		}
	}
	for _, at := range a.cfg.Ports.Attachments() {
		if at.ContainerID != containerID || at.IfName != ifName {
			continue
		}
		if _, listed := out[at.EndpointID]; listed {
			continue
		}
		netID, ok := strings.CutSuffix(at.EndpointID, "-"+name)
		if !ok {
			continue
		}
		p, known := a.placeOf(netID)
		if !known {
			// The network is gone, or not read yet: its parts are only in its id.
			p = splitNetworkID(netID)
		}
		out[at.EndpointID] = placedName{p, name}
	}
	return out
}

func (a *Attacher) placeOf(netID string) (Place, bool) {
	n, ok := a.cfg.Agent.KnownNetwork(netID)
	return Place{Tenant: n.Tenant, Network: n.Name}, ok
}

// splitNetworkID takes <network>.<tenant> apart at the last dot; used only when the
// network's record, which has the parts, is gone.
func splitNetworkID(id string) Place {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return Place{Network: id, Tenant: "default"}
	}
	return Place{Network: id[:i], Tenant: id[i+1:]}
}
