package dockplugin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// Messages of the original, followed by the cause.
const (
	msgNetwork = "Could not get network name"
	msgMaster  = "master failed to create endpoint"
	msgCreate  = "Could not create endpoint"
	msgFind    = "Could not find created endpoint"
)

// createEndpoint has netmaster create the endpoint, with the addresses from the Engine, and
// makes its interface. Repeated for the same endpoint it returns the same reply; if it
// fails nothing remains.
func (s *Server) createEndpoint(ctx context.Context, req cnm.CreateEndpointRequest) (cnm.CreateEndpointResponse, error) {
	none := cnm.CreateEndpointResponse{}
	if req.EndpointID == "" {
		return none, errs.New(errs.Invalid, "no endpoint id given")
	}
	release, err := s.endpoints.Lock(ctx, req.EndpointID)
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
	want.Network, want.Name, want.Port = r.Ref(), req.EndpointID, drivers.Attachment{ContainerID: req.EndpointID}
	s.given.made(req.EndpointID)
	s.given.note6(req.EndpointID, want.IPv6 != "")
	s.engine.collector.begin(req.EndpointID)
	created, err := s.endpoints.Create(ctx, want)
	if err != nil {
		return none, createError(err)
	}
	rec := created.Record
	s.cfg.Log.WithFields(logrus.Fields{"endpoint": rec.ID, "ip": rec.IPAddress, "mac": rec.MacAddress}).Info("endpoint created")
	answer := &cnm.EndpointInterface{MacAddress: rec.MacAddress}
	if preset {
		answer.MacAddress = ""
	}
	return cnm.CreateEndpointResponse{Interface: answer}, nil
}

// wantedInterface decodes what the Engine has chosen: addresses without their lengths, and
// possibly a MAC address, which then must not be returned.
func wantedInterface(req cnm.CreateEndpointRequest) (want endpoint.Spec, macIsPreset bool, err error) {
	ifc := cnm.EndpointInterface{}
	if req.Interface != nil {
		ifc = *req.Interface
	}
	for _, a := range []struct {
		text string
		into *string
	}{{ifc.Address, &want.IPv4}, {ifc.AddressIPv6, &want.IPv6}} {
		if a.text == "" {
			continue
		}
		p, err := netip.ParsePrefix(a.text)
		if err != nil {
			return want, false, errs.New(errs.Invalid, "address %q: expected ADDRESS/LENGTH", a.text)
		}
		*a.into = p.Addr().String()
	}
	want.MAC = ifc.MacAddress
	if text, ok := req.Options[cnm.OptionMAC].(string); ok && want.MAC == "" {
		want.MAC = text
	}
	return want, ifc.MacAddress != "", nil
}

// createError says, with the original's messages, which part of an endpoint could not be
// created.
func createError(err error) error {
	var failure *endpoint.CreateError
	if errors.As(err, &failure) && failure.Part == endpoint.RecordPart {
		return fmt.Errorf("%s: %w", msgMaster, err)
	}
	return fmt.Errorf("%s: %w", msgCreate, err)
}

// removing records that the addresses of an endpoint are freed with it.
func (s *Server) removing(e endpoint.Endpoint) {
	if e.Record == nil {
		return
	}
	s.borrowed(e.Network, e.Name, e.Record.IPAddress)
	s.given.goWith(e.Network, e.Record.IPAddress, e.Record.IPv6Address)
}

// deleteEndpoint removes an endpoint; a missing one is not an error. Neither the docker
// network nor that of Contiv need exist any more. What cannot be removed now is removed
// later: an Engine that gets an error keeps the endpoint forever.
func (s *Server) deleteEndpoint(ctx context.Context, req cnm.EndpointRequest) (cnm.Empty, error) {
	release, err := s.endpoints.Lock(ctx, req.EndpointID)
	if err != nil {
		return cnm.Empty{}, err
	}
	defer release()
	s.given.note6(req.EndpointID, true)
	found := s.endpoints.Named(req.EndpointID)
	if r, ok, _ := s.dir.get(req.NetworkID); ok {
		e := endpoint.At(r.Ref(), req.EndpointID)
		found[e.ID] = e
	}
	// Until both are ready not all records and ports are known.
	err = errors.Join(s.cfg.Agent.Ready(), s.cfg.Ports.Ready())
	for id, e := range found {
		if failed := s.endpoints.Remove(ctx, e); failed != nil {
			err = failed
			continue
		}
		s.cfg.Log.WithField("endpoint", id).Info("endpoint removed")
	}
	if err != nil {
		s.cfg.Log.WithError(err).WithField("endpoint", req.EndpointID).Warn("cannot remove an endpoint completely; retrying in the background")
		s.engine.collector.end(req.EndpointID)
		s.engine.wake()
	}
	return cnm.Empty{}, nil
}

// join returns the interface for the Engine to move, once the switch forwards for it.
func (s *Server) join(ctx context.Context, req cnm.JoinRequest) (cnm.JoinResponse, error) {
	none := cnm.JoinResponse{}
	r, err := s.dir.find(ctx, req.NetworkID)
	if err != nil {
		return none, fmt.Errorf("%s: %w", msgNetwork, err)
	}
	id := state.EndpointID(r.Ref().NetworkID(), req.EndpointID)
	n, err := s.cfg.Agent.Network(ctx, r.Ref().NetworkID())
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

// forwardsWithin limits how long a container waits for the switch.
const forwardsWithin = 8 * time.Second

// forwards waits until the switch forwards for an endpoint, but not longer than
// forwardsWithin if the switch is slow or down: an Engine tries to start a container only
// once, and the flows follow later.
func (s *Server) forwards(ctx context.Context, id string) error {
	short, cancel := context.WithTimeout(ctx, forwardsWithin)
	defer cancel()
	err := s.cfg.Ports.Realised(short, id)
	if err == nil || ctx.Err() != nil || !errs.Is(err, errs.Timeout) && !errs.Is(err, errs.Unavailable) {
		return err
	}
	s.cfg.Log.WithError(err).WithField("endpoint", id).Warn("the switch does not forward for a container yet; the container starts without network for now")
	return nil
}

// text is an address, or empty.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
