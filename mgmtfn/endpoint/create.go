package endpoint

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Spec describes a requested endpoint. netmaster chooses the addresses and MAC if they are
// empty.
type Spec struct {
	Network    state.NetworkRef
	Name       string // unique inside the network
	CommonName string // in DNS
	IPv4, IPv6 string // without prefix length
	MAC        string
	// Port says what the port is for; the fields that the rest of the Spec implies are
	// filled in.
	Port drivers.Attachment
}

// Created is an endpoint that exists: netmaster's record, and the port.
type Created struct {
	Record state.Endpoint
	Port   drivers.Port
}

// Part is the part of an endpoint that could not be created.
type Part int

// The parts of a creation.
const (
	RecordPart  Part = iota + 1 // netmaster's record
	NetworkPart                 // the network must be known to this host's agent
	PortPart                    // the port in the switch
)

// CreateError is the error of Create.
type CreateError struct {
	Part Part
	Err  error
}

func (e *CreateError) Error() string { return e.Err.Error() }
func (e *CreateError) Unwrap() error { return e.Err }

func failed(p Part, err error) error {
	if err == nil {
		return nil
	}
	return &CreateError{p, err}
}

// Create creates an endpoint, its record and its port at the same time. Repeated for the
// same endpoint it returns the same one. If it fails nothing remains; the error is a
// *CreateError.
func (m *Manager) Create(ctx context.Context, s Spec) (Created, error) {
	m.queue.forget(state.EndpointID(s.Network.NetworkID(), s.Name))
	var c Created
	var refused error
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		c.Record, refused = m.record(gctx, s)
		return failed(RecordPart, refused)
	})
	g.Go(func() (err error) {
		c.Port, err = m.attach(gctx, s)
		return err
	})
	err := g.Wait()
	if err == nil {
		m.cfg.PortsChanged()
		return c, nil
	}
	if ctx.Err() != nil && refused != nil {
		err = failed(RecordPart, refused) // both ran out of time: netmaster was the cause
	}
	e := At(s.Network, s.Name)
	if c.Record.HomingHost != "" && c.Record.HomingHost != m.cfg.HostLabel {
		e.Network = state.NetworkRef{} // the record is another host's: only the port is ours
	}
	m.undo(ctx, e)
	return Created{}, err
}

// record has netmaster create the record, which must be this host's.
func (m *Manager) record(ctx context.Context, s Spec) (state.Endpoint, error) {
	rec, err := m.cfg.Master.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{
		TenantName: s.Network.Tenant, NetworkName: s.Network.Network, ServiceName: s.Network.Group, EndpointID: s.Name, EPCommonName: s.CommonName,
		ConfigEP: masterapi.ConfigEP{
			Container: s.Name, Host: m.cfg.HostLabel, ServiceName: s.Network.Group,
			IPAddress: s.IPv4, IPv6Address: s.IPv6, MacAddress: s.MAC,
		},
	})
	if err == nil && rec.HomingHost != m.cfg.HostLabel {
		err = errs.New(errs.Exists, "endpoint %s already exists on host %s", rec.ID, rec.HomingHost)
	}
	return rec, err
}

// attach creates the port as soon as the network is known on this host.
func (m *Manager) attach(ctx context.Context, s Spec) (drivers.Port, error) {
	n, err := m.cfg.Agent.Network(ctx, s.Network.NetworkID())
	if err != nil {
		return drivers.Port{}, failed(NetworkPart, err)
	}
	a := s.Port
	a.EndpointID = state.EndpointID(n.ID, s.Name)
	a.Tenant, a.Network = s.Network.Tenant, s.Network.Network
	port, err := m.cfg.Ports.Attach(ctx, a, n.Encap, n.Tag)
	return port, failed(PortPart, err)
}

// Undo removes what exists of an endpoint whose creation has failed, or what followed it.
// It uses its own time limit; if the caller's is over, perhaps because of netmaster, the
// deletion is sent to netmaster in the background.
func (m *Manager) Undo(caller context.Context, ref state.NetworkRef, name string) {
	m.undo(caller, At(ref, name))
}

func (m *Manager) undo(caller context.Context, e Endpoint) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), undoWithin)
	defer cancel()
	if err := m.remove(ctx, e, caller.Err() == nil); err != nil {
		m.cfg.Log.WithError(err).WithField("endpoint", e.ID).Warn("cannot undo the creation of an endpoint that failed; it is removed later")
	}
}
