package dockplugin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
)

// allocateNetwork is called on the manager of a swarm when a user makes a network. With
// a tag it stands for the group or network that has the tag; without one a network of
// its own is made, called after the docker network.
func (s *Server) allocateNetwork(ctx context.Context, req cnm.AllocateNetworkRequest) (cnm.AllocateNetworkResponse, error) {
	echo := cnm.AllocateNetworkResponse{Options: req.Options}
	if !s.cfg.Swarm {
		return echo, nil
	}
	place, ok, err := s.placeOfOptions(ctx, req.Options)
	if err != nil {
		return cnm.AllocateNetworkResponse{}, err
	}
	if !ok {
		if place, err = s.networkOfSwarm(ctx, req); err != nil {
			return cnm.AllocateNetworkResponse{}, err
		}
	}
	value, err := json.Marshal(docknet.NewRecord(place, dockerd.Network{ID: req.NetworkID, IPv6: len(req.IPv6Data) > 0}))
	if err != nil {
		return cnm.AllocateNetworkResponse{}, err
	}
	if err := s.commit(ctx, objdb.Put(docknet.Root+place.Key(), value)); err != nil {
		return cnm.AllocateNetworkResponse{}, fmt.Errorf("note docker network %.12s: %w", req.NetworkID, err)
	}
	return echo, nil
}

// networkOfSwarm makes the network that a swarm's docker network stands for.
func (s *Server) networkOfSwarm(ctx context.Context, req cnm.AllocateNetworkRequest) (docknet.Place, error) {
	if len(req.IPv4Data) == 0 || req.IPv4Data[0].Pool == "" {
		return docknet.Place{}, errs.New(errs.Invalid, "which network? Give -o contiv-tag=TAG and --ipam-opt contiv-tag=TAG, or --subnet")
	}
	n := contivmodel.Network{
		Key: docknet.DefaultTenant + ":" + req.NetworkID, TenantName: docknet.DefaultTenant, NetworkName: req.NetworkID,
		Encap: state.EncapVXLAN, NwType: state.NetworkData,
		Subnet: req.IPv4Data[0].Pool, Gateway: host(req.IPv4Data[0].Gateway),
	}
	if len(req.IPv6Data) > 0 {
		n.IPv6Subnet, n.IPv6Gateway = req.IPv6Data[0].Pool, host(req.IPv6Data[0].Gateway)
	}
	place := docknet.Place{Tenant: n.TenantName, Network: n.NetworkName}
	if _, ok := s.cfg.Agent.KnownNetwork(place.NetworkID()); ok {
		return place, nil // asked again
	}
	return place, s.cfg.Master.CreateNetwork(ctx, n)
}

// host is the address of ADDRESS/LENGTH, or nothing.
func host(text string) string {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return ""
	}
	return p.Addr().String()
}

// freeNetwork undoes allocateNetwork; what is gone is no error.
func (s *Server) freeNetwork(ctx context.Context, req cnm.NetworkRequest) (cnm.Empty, error) {
	if !s.cfg.Swarm {
		return cnm.Empty{}, nil
	}
	if r, ok, _ := s.dir.get(req.NetworkID); ok {
		if err := s.commit(ctx, objdb.Delete(docknet.Root+r.ID)); err != nil {
			return cnm.Empty{}, fmt.Errorf("forget docker network %.12s: %w", req.NetworkID, err)
		}
	}
	if _, ok := s.cfg.Agent.KnownNetwork(state.NetworkID(req.NetworkID, docknet.DefaultTenant)); !ok {
		return cnm.Empty{}, nil
	}
	return cnm.Empty{}, s.cfg.Master.DeleteNetwork(ctx, docknet.DefaultTenant+":"+req.NetworkID)
}

func (s *Server) commit(ctx context.Context, op objdb.Op) error {
	_, err := s.cfg.Store.Commit(ctx, objdb.Txn{Then: []objdb.Op{op}})
	return err
}
