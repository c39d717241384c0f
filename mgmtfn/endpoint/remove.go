package endpoint

import (
	"context"

	"github.com/contiv/netplugin/state/masterapi"
)

// Remove removes an endpoint: its port immediately, its record as soon as netmaster can be
// reached. What is gone already is not an error.
func (m *Manager) Remove(ctx context.Context, e Endpoint) error { return m.remove(ctx, e, true) }

// remove is Remove; with tell false netmaster is told in the background only.
func (m *Manager) remove(ctx context.Context, e Endpoint, tell bool) error {
	if m.cfg.Removing != nil {
		m.cfg.Removing(m.withRecord(e))
	}
	if err := m.cfg.Ports.Detach(ctx, e.ID); err != nil {
		return err
	}
	m.cfg.PortsChanged()
	if e.Network.Network == "" {
		return nil // there is no record: netmaster removes no network that has endpoints
	}
	req := masterapi.DeleteEndpointRequest{TenantName: e.Network.Tenant, NetworkName: e.Network.Network, ServiceName: e.Network.Group, EndpointID: e.Name}
	if !tell {
		m.queue.add(e.ID, req)
		return nil
	}
	short, cancel := m.Share(ctx)
	defer cancel()
	if err := m.cfg.Master.DeleteEndpoint(short, req); err != nil {
		m.queue.add(e.ID, req)
		m.cfg.Log.WithError(err).WithField("endpoint", e.ID).Warn("cannot tell netmaster that an endpoint is deleted; retrying in the background")
	}
	return nil
}

func (m *Manager) withRecord(e Endpoint) Endpoint {
	if e.Record != nil {
		return e
	}
	for _, rec := range m.cfg.Agent.LocalEndpoints() {
		if rec.ID == e.ID {
			e.Record = &rec
		}
	}
	return e
}
