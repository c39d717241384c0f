package docknet

import (
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/dockerd"
)

// Keys of the records.
const (
	// Root holds the docker networks that all Engines share, by Key.
	Root = state.OperRoot + "docknet/"
	// HostRoot holds those of one Engine: <host label>/<docker network id>.
	HostRoot = state.OperRoot + "docknets/"
	// NoEngine stands below HostRoot instead of a docker network's id while a host has
	// no Engine that answers: nobody waits for its docker networks.
	NoEngine = "no-engine"
)

// Record is a docker network and what it stands for.
type Record struct {
	ID          string `json:"id"` // see Key
	TenantName  string `json:"tenantName"`
	NetworkName string `json:"networkName"`
	ServiceName string `json:"serviceName"` // the group's name
	DocknetUUID string `json:"docknetUUID"` // the docker network's id
	// IPv6 is set for a docker network whose containers get IPv6 addresses.
	IPv6 bool `json:"ipv6,omitempty"`
	// Internal is set for a docker network without a way out.
	Internal bool `json:"internal,omitempty"`
	// Freed is set for a docker network of a swarm that is gone, while the network that was
	// made for it has endpoints yet.
	Freed bool `json:"freed,omitempty"`
}

// NewRecord makes the record of a docker network with an id.
func NewRecord(p state.NetworkRef, n dockerd.Network) Record {
	return Record{
		ID: Key(p), TenantName: p.Tenant, NetworkName: p.Network, ServiceName: p.Group,
		DocknetUUID: n.ID, IPv6: n.IPv6, Internal: n.Internal,
	}
}

// Ref names the network, or the group of it, that the docker network's containers belong to.
func (r Record) Ref() state.NetworkRef {
	return state.NetworkRef{Tenant: r.TenantName, Network: r.NetworkName, Group: r.ServiceName}
}
