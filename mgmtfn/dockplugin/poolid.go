package dockplugin

import (
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/errs"
)

// poolID is what an Engine keeps with a network and gives back with every address:
//
//	<network>[:<group>].<tenant>|<pool>
//
// or the pool alone when nothing else is known.
type poolID struct {
	owner string // <network>[:<group>].<tenant>, or empty
	pool  netip.Prefix
}

// ownerOf is the first part of the pool id of a network.
func ownerOf(p state.NetworkRef) string {
	if p.Group != "" {
		return p.Network + ":" + p.Group + "." + p.Tenant
	}
	return p.NetworkID()
}

func (id poolID) String() string {
	if id.owner == "" {
		return id.pool.String()
	}
	return id.owner + "|" + id.pool.String()
}

// parsePoolID reads a pool id.
func parsePoolID(text string) (poolID, error) {
	owner, pool, given := strings.Cut(text, "|")
	if !given {
		owner, pool = "", text
	}
	p, err := netip.ParsePrefix(pool)
	if err != nil || given && owner == "" {
		return poolID{}, errs.New(errs.Invalid, "pool id %.100q: expected [NETWORK[:GROUP].TENANT|]ADDRESS/LENGTH", text)
	}
	return poolID{owner: owner, pool: p.Masked()}, nil
}

// network returns the network of a pool id: by its owner, or without one by its subnet. If
// several tenants have the subnet, it is the network whose id comes first.
func (id poolID) network(t docknet.Topology) (state.Network, bool) {
	for _, n := range t.Networks {
		if id.owner == n.ID && id.owner != "" {
			return n, true
		}
		v4, v6 := docknet.Subnets(n)
		if id.owner == "" && (v4.Prefix == id.pool || v6.Prefix == id.pool) {
			return n, true
		}
	}
	for _, g := range t.Groups {
		p := state.NetworkRef{Tenant: g.TenantName, Network: g.NetworkName, Group: g.GroupName}
		if id.owner != "" && ownerOf(p) == id.owner {
			return t.Network(p.NetworkID())
		}
	}
	return state.Network{}, false
}

// gateway returns the gateway of the network in the pool; the zero value when it has none.
func (id poolID) gateway(n state.Network) netip.Addr {
	v4, v6 := docknet.Subnets(n)
	if id.pool.Addr().Is6() {
		return v6.Gateway
	}
	return v4.Gateway
}
