package dockplugin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netspec"
)

// allocateNetwork is called on the manager of a swarm when a user makes a network. With
// a tag it stands for the group or network that has the tag; without one a network of
// its own is made, called after the docker network.
func (s *Server) allocateNetwork(ctx context.Context, req cnm.AllocateNetworkRequest) (cnm.AllocateNetworkResponse, error) {
	echo := cnm.AllocateNetworkResponse{Options: req.Options}
	if !s.cfg.Swarm {
		return echo, nil
	}
	ref, ok, err := s.refOfOptions(ctx, req.Options)
	if err != nil {
		return cnm.AllocateNetworkResponse{}, err
	}
	if !ok {
		if ref, err = s.networkOfSwarm(ctx, req); err != nil {
			return cnm.AllocateNetworkResponse{}, err
		}
	}
	if again, err := s.standsFor(ctx, req.NetworkID, ref); err != nil {
		return cnm.AllocateNetworkResponse{}, err
	} else if again {
		// The manager has been restarted, or is another one. It asks again for what it
		// holds, and has forgotten the rest.
		if err := s.releaseHeld(ctx, ref, false); err != nil {
			return cnm.AllocateNetworkResponse{}, err
		}
	}
	rec := docknet.NewRecord(ref, dockerd.Network{ID: req.NetworkID, IPv6: len(req.IPv6Data) > 0})
	if err := s.put(ctx, masterapi.HostRecords{Swarm: []docknet.Record{rec}}); err != nil {
		return cnm.AllocateNetworkResponse{}, fmt.Errorf("write docker network %.12s to the store: %w", req.NetworkID, err)
	}
	return echo, nil
}

// standsFor reports whether a docker network has been noted for a network.
func (s *Server) standsFor(ctx context.Context, id string, ref state.NetworkRef) (bool, error) {
	kv, err := s.cfg.Store.Get(ctx, docknet.Root+docknet.Key(ref))
	if errs.Is(err, errs.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the docker network of %s: %w", docknet.Name(ref), err)
	}
	var r docknet.Record
	return json.Unmarshal(kv.Value, &r) == nil && r.DocknetUUID == id, nil
}

// networkOfSwarm makes the network that a swarm's docker network stands for.
func (s *Server) networkOfSwarm(ctx context.Context, req cnm.AllocateNetworkRequest) (state.NetworkRef, error) {
	if len(req.IPv4Data) == 0 || req.IPv4Data[0].Pool == "" {
		return state.NetworkRef{}, errs.New(errs.Invalid, "which network? Give -o contiv-tag=TAG and --ipam-opt contiv-tag=TAG, or --subnet")
	}
	n := contivmodel.Network{
		Key: docknet.DefaultTenant + ":" + req.NetworkID, TenantName: docknet.DefaultTenant, NetworkName: req.NetworkID,
		Encap: state.EncapVXLAN, Settings: netspec.Settings{NwType: state.NetworkData},
		Subnet: req.IPv4Data[0].Pool, Gateway: host(req.IPv4Data[0].Gateway),
	}
	if len(req.IPv6Data) > 0 {
		n.IPv6Subnet, n.IPv6Gateway = req.IPv6Data[0].Pool, host(req.IPv6Data[0].Gateway)
	}
	ref := state.NetworkRef{Tenant: n.TenantName, Network: n.NetworkName}
	if _, ok := s.cfg.Agent.KnownNetwork(ref.NetworkID()); ok {
		return ref, nil // asked again
	}
	return ref, s.cfg.Master.CreateNetwork(ctx, n)
}

// host is the address of ADDRESS/LENGTH, or nothing.
func host(text string) string {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return ""
	}
	return p.Addr().String()
}

// put has netmaster write records.
func (s *Server) put(ctx context.Context, r masterapi.HostRecords) error {
	return s.cfg.Master.PutHostRecords(ctx, s.cfg.HostLabel, r)
}

// swarmID is what the ids of a swarm's objects look like: 25 digits to the base 36.
var swarmID = regexp.MustCompile(`^[0-9a-z]{25}$`)

// addressPool names the pool of an id for netmaster. In a swarm one without an owner
// belongs to a network that was made for it.
func (s *Server) addressPool(id poolID) string {
	if s.cfg.Swarm && id.owner == "" {
		return id.pool.String() + ":" + docknet.DefaultTenant
	}
	return id.pool.String()
}

// borrowed says of the address of a task's endpoint, if an agent that was here before this
// one has made it, that this node will give it back as well.
func (s *Server) borrowed(ref state.NetworkRef, endpoint, address string) {
	a, err := netip.ParseAddr(address)
	if !s.cfg.Swarm || err != nil || !s.given.inherited(endpoint) {
		return
	}
	owner := ownerOf(ref)
	if ref.Group == "" && swarmID.MatchString(ref.Network) {
		owner = "" // made for the docker network, and called after it
	}
	s.given.borrow(owner, a)
}
