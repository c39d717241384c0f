package ovsd

import (
	"context"
	"maps"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/errs"
)

// realisation is what a switch must have for an endpoint of this host.
type realisation struct {
	known, attached bool
	ready           bool // all of its owners are known
	sw              *ofnet.Switch
	bridge, port    string
	owners          []string
	tenant          string
	whole           bool // the switch has had all flows of the tenant since the host needs them
	modeErr         error
	changed         <-chan struct{}
}

// wantedFor returns what a switch must have for an endpoint, including its policy, to which
// connections are subject only after the initial sync.
func (d *Driver) wantedFor(id string) (w realisation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, known := d.compiler.Endpoints[id]
	w = realisation{known: known, attached: d.compiler.Ports[id].OpenFlow != 0, ready: true, changed: d.changed.Next(), owners: []string{"ep/" + id}}
	s := d.bridges[e.Network.Encap]
	if s == nil {
		return w
	}
	w.sw, w.bridge, w.port = s.sw, s.name, portName(d.compiler.Ports[id].Name)
	w.tenant, w.whole = e.Network.Tenant, d.tenants[e.Network.Tenant]
	_, w.modeErr = d.compiler.Pipeline(s.encap)
	g, declared := d.compiler.EndpointPolicies[id]
	if !declared || !d.cfg.EndpointPolicies {
		return w
	}
	for _, set := range []string{g.In, g.Out} {
		if set != "" {
			w.owners = append(w.owners, "rule-set/"+set)
		}
	}
	w.owners, w.ready = append(w.owners, "endpoint-policy/"+id, "vrf/"+e.Network.Tenant), d.compiler.Synced
	return w
}

// Realised waits until the switch forwards for an attached local endpoint.
func (d *Driver) Realised(ctx context.Context, endpointID string) error {
	for {
		w := d.wantedFor(endpointID)
		if w.modeErr != nil {
			return errs.New(errs.Invalid, "endpoint %s: %w", endpointID, w.modeErr)
		}
		if w.known && w.attached && w.ready && w.sw != nil && d.tagged(endpointID) {
			return d.settled(ctx, w)
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			if !w.known {
				return errs.New(errs.Timeout, "endpoint %s is not in the store yet: %w", endpointID, ctx.Err())
			}
			return errs.New(errs.Timeout, "endpoint %s has no port yet: %w", endpointID, ctx.Err())
		}
	}
}

// settled waits until the switch has the wanted flows, and forwards by them.
func (d *Driver) settled(ctx context.Context, w realisation) error {
	if err := d.drained(ctx); err != nil {
		return errs.New(errs.Unavailable, "changes are still to be compiled: %w", err)
	}
	if !w.whole { // this is the tenant's first endpoint here: flows to all others come with it
		if err := w.sw.CaughtUp(ctx); err != nil {
			return err
		}
		d.noteTenant(w.tenant)
	}
	for _, owner := range w.owners {
		if err := w.sw.Settled(ctx, owner); err != nil {
			return err
		}
	}
	if err := d.cache.current(ctx, w.bridge, w.port); err != nil {
		d.cfg.Log.WithError(err).Debug("the switch does not tell when its cache is current")
	}
	return nil
}

// noteTenant notes that the switches have all flows of a tenant, while the host needs them.
func (d *Driver) noteTenant(tenant string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.compiler.NeedsTenant(tenant) {
		d.tenants[tenant] = true
	}
}

// forgetTenants forgets those whose flows the host does not need any more. The caller holds mu.
func (d *Driver) forgetTenants() {
	maps.DeleteFunc(d.tenants, func(tenant string, _ bool) bool { return !d.compiler.NeedsTenant(tenant) })
}
