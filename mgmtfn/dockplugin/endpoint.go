package dockplugin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Texts of the original, followed by the cause.
const (
	msgNetwork = "Could not get network name"
	msgMaster  = "master failed to create endpoint"
	msgCreate  = "Could not create endpoint"
	msgFind    = "Could not find created endpoint"
)

// createEndpoint has netmaster create the endpoint, with the addresses the Engine has
// got, and makes its interface. Repeated for the same endpoint it answers the same; when
// it fails nothing is left.
func (s *Server) createEndpoint(ctx context.Context, req cnm.CreateEndpointRequest) (cnm.CreateEndpointResponse, error) {
	none := cnm.CreateEndpointResponse{}
	if req.EndpointID == "" {
		return none, errs.New(errs.Invalid, "no endpoint id given")
	}
	release, err := s.turns.Lock(ctx, req.EndpointID)
	if err != nil {
		return none, err
	}
	defer release()
	r, err := s.dir.find(ctx, req.NetworkID)
	if err != nil {
		return none, fmt.Errorf("%s: %w", msgNetwork, err)
	}
	want, preset, err := wantedInterface(req)
	if err != nil {
		return none, err
	}
	s.given.made(req.EndpointID)
	s.given.note6(req.EndpointID, want.IPv6Address != "")
	rec, err := s.makeEndpoint(ctx, r.Place(), req.EndpointID, want)
	if err != nil {
		s.undo(r.Place(), req.EndpointID)
		return none, err
	}
	s.cfg.Agent.PortsChanged()
	s.cfg.Log.WithFields(logrus.Fields{"endpoint": rec.ID, "ip": rec.IPAddress, "mac": rec.MacAddress}).Info("endpoint created")
	answer := &cnm.EndpointInterface{MacAddress: rec.MacAddress}
	if preset {
		answer.MacAddress = ""
	}
	return cnm.CreateEndpointResponse{Interface: answer}, nil
}

// wantedInterface reads what the Engine has chosen: addresses without their lengths, and
// perhaps a MAC address, which then must not be answered.
func wantedInterface(req cnm.CreateEndpointRequest) (want masterapi.ConfigEP, macIsPreset bool, err error) {
	ifc := cnm.EndpointInterface{}
	if req.Interface != nil {
		ifc = *req.Interface
	}
	for _, a := range []struct {
		text string
		into *string
	}{{ifc.Address, &want.IPAddress}, {ifc.AddressIPv6, &want.IPv6Address}} {
		if a.text == "" {
			continue
		}
		p, err := netip.ParsePrefix(a.text)
		if err != nil {
			return want, false, errs.New(errs.Invalid, "address %q: expected ADDRESS/LENGTH", a.text)
		}
		*a.into = p.Addr().String()
	}
	want.MacAddress = ifc.MacAddress
	if text, ok := req.Options[cnm.OptionMAC].(string); ok && want.MacAddress == "" {
		want.MacAddress = text
	}
	return want, ifc.MacAddress != "", nil
}

// makeEndpoint creates endpoint and port, both at the same time.
func (s *Server) makeEndpoint(ctx context.Context, place docknet.Place, name string, want masterapi.ConfigEP) (rec state.Endpoint, err error) {
	id := state.EndpointID(place.NetworkID(), name)
	s.pending.Forget(id)
	s.engine.collector.begin(name)
	want.Container, want.Host, want.ServiceName = name, s.cfg.HostLabel, place.Group
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		rec, err = s.cfg.Master.CreateEndpoint(gctx, masterapi.CreateEndpointRequest{
			TenantName: place.Tenant, NetworkName: place.Network, ServiceName: place.Group, EndpointID: name, ConfigEP: want,
		})
		if err == nil && rec.HomingHost != s.cfg.HostLabel {
			err = errs.New(errs.Exists, "endpoint %s already exists on host %s", rec.ID, rec.HomingHost)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", msgMaster, err)
		}
		return nil
	})
	g.Go(func() error {
		n, err := s.cfg.Agent.Network(gctx, place.NetworkID())
		if err == nil {
			_, err = s.cfg.Ports.Attach(gctx, drivers.Attachment{EndpointID: id, ContainerID: name}, n.Encap, n.Tag)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", msgCreate, err)
		}
		return nil
	})
	return rec, g.Wait()
}

// undo leaves nothing of an endpoint that could not be made. The call's time may be
// over, so it takes its own.
func (s *Server) undo(place docknet.Place, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), undoTimeout)
	defer cancel()
	if err := s.remove(ctx, place, name); err != nil {
		s.cfg.Log.WithError(err).WithField("endpoint", name).Warn("what is left of a failed endpoint is removed later")
	}
}

// masterShare is how much of a deletion's time netmaster may take; what it cannot be told
// now it is told later.
const masterShare = 3 * time.Second

// share bounds what a removal asks of netmaster.
func (s *Server) share(ctx context.Context) (context.Context, context.CancelFunc) {
	share := masterShare
	if s.pending.Len() > 0 {
		share = 0 // it has been waited for already: containers go one after the other
	}
	return context.WithTimeout(ctx, share)
}

// remove takes an endpoint down: its port, and its record at netmaster.
func (s *Server) remove(ctx context.Context, place docknet.Place, name string) error {
	id := state.EndpointID(place.NetworkID(), name)
	for _, rec := range s.cfg.Agent.LocalEndpoints() {
		if rec.ID == id {
			defer s.given.goWith(place, rec.IPAddress, rec.IPv6Address)
			s.borrowed(place, name, rec.IPAddress)
		}
	}
	if err := s.cfg.Ports.Detach(ctx, id); err != nil {
		return err
	}
	s.cfg.Agent.PortsChanged()
	req := masterapi.DeleteEndpointRequest{TenantName: place.Tenant, NetworkName: place.Network, ServiceName: place.Group, EndpointID: name}
	short, cancel := s.share(ctx)
	defer cancel()
	if err := s.cfg.Master.DeleteEndpoint(short, req); err != nil {
		s.pending.Add(id, req)
		s.cfg.Log.WithError(err).WithField("endpoint", id).Warn("netmaster cannot be told of a deletion now; retrying in the background")
	}
	return nil
}

// deleteEndpoint takes an endpoint down; one that is gone is no error. Neither the docker
// network nor that of Contiv need exist any more. What cannot be taken down now is later:
// an Engine that is refused keeps the endpoint for ever.
func (s *Server) deleteEndpoint(ctx context.Context, req cnm.EndpointRequest) (cnm.Empty, error) {
	release, err := s.turns.Lock(ctx, req.EndpointID)
	if err != nil {
		return cnm.Empty{}, err
	}
	defer release()
	s.given.note6(req.EndpointID, true)
	places := s.placesOf(req.EndpointID)
	if r, ok, _ := s.dir.get(req.NetworkID); ok {
		places[state.EndpointID(r.Place().NetworkID(), req.EndpointID)] = r.Place()
	}
	// Until both are ready not all records and ports are known.
	err = errors.Join(s.cfg.Agent.Ready(), s.cfg.Ports.Ready())
	for id, place := range places {
		if failed := s.remove(ctx, place, req.EndpointID); failed != nil {
			err = failed
			continue
		}
		s.cfg.Log.WithField("endpoint", id).Info("endpoint removed")
	}
	if err != nil {
		s.cfg.Log.WithError(err).WithField("endpoint", req.EndpointID).Info("what is left of an endpoint is removed in the background")
		s.engine.collector.end(req.EndpointID)
		s.engine.wake()
	}
	return cnm.Empty{}, nil
}

// placesOf finds where an endpoint of this host is, by its records and by its ports.
func (s *Server) placesOf(name string) map[string]docknet.Place {
	out := map[string]docknet.Place{}
	for _, rec := range s.cfg.Agent.LocalEndpoints() {
		if rec.EndpointID == name {
			out[rec.ID] = s.placeOf(rec.NetID, rec.ServiceName)
		}
	}
	for _, at := range s.cfg.Ports.Attachments() {
		netID, ok := strings.CutSuffix(at.EndpointID, "-"+name)
		if _, known := out[at.EndpointID]; ok && !known && at.ContainerID == name {
			out[at.EndpointID] = s.placeOf(netID, "")
		}
	}
	return out
}

// placeOf takes the id of a network apart, at its last dot when the network is gone.
func (s *Server) placeOf(netID, group string) docknet.Place {
	if n, ok := s.cfg.Agent.KnownNetwork(netID); ok {
		return docknet.Place{Tenant: n.Tenant, Network: n.Name, Group: group}
	}
	i := strings.LastIndexByte(netID, '.')
	if i < 0 {
		return docknet.Place{Tenant: docknet.DefaultTenant, Network: netID, Group: group}
	}
	return docknet.Place{Tenant: netID[i+1:], Network: netID[:i], Group: group}
}

// join says which interface the Engine is to move, once the switch forwards for it.
func (s *Server) join(ctx context.Context, req cnm.JoinRequest) (cnm.JoinResponse, error) {
	none := cnm.JoinResponse{}
	r, err := s.dir.find(ctx, req.NetworkID)
	if err != nil {
		return none, fmt.Errorf("%s: %w", msgNetwork, err)
	}
	id := state.EndpointID(r.Place().NetworkID(), req.EndpointID)
	n, err := s.cfg.Agent.Network(ctx, r.Place().NetworkID())
	if err != nil {
		return none, err
	}
	for _, at := range s.cfg.Ports.Attachments() {
		if at.EndpointID != id {
			continue
		}
		if err := s.forwards(ctx, id); err != nil {
			return none, fmt.Errorf("endpoint %s: %w", id, err)
		}
		out := cnm.JoinResponse{InterfaceName: cnm.InterfaceName{SrcName: at.Port.Name, DstPrefix: "eth"}, StaticRoutes: []cnm.StaticRoute{}}
		if !r.Internal {
			out.Gateway = text(n.Gateway4)
			if r.IPv6 && !s.given.without6(req.EndpointID) {
				out.GatewayIPv6 = text(n.Gateway6)
			}
		}
		return out, nil
	}
	return none, errs.New(errs.NotFound, "%s: %s has no port on host %s", msgFind, id, s.cfg.HostLabel)
}

// forwardsWithin bounds how long a container waits for the switch.
const forwardsWithin = 8 * time.Second

// forwards waits until the switch forwards for an endpoint. One that is slow, or away, is
// not waited for longer than forwardsWithin: an Engine starts a container once, and the
// flows come when they can.
func (s *Server) forwards(ctx context.Context, id string) error {
	short, cancel := context.WithTimeout(ctx, forwardsWithin)
	defer cancel()
	err := s.cfg.Ports.Realised(short, id)
	if err == nil || ctx.Err() != nil || !errs.Is(err, errs.Timeout) && !errs.Is(err, errs.Unavailable) {
		return err
	}
	s.cfg.Log.WithError(err).WithField("endpoint", id).Warn("a container starts before the switch forwards for it")
	return nil
}

// text is an address, or nothing.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
