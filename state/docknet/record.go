package docknet

import (
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/dockerd"
)

// Keys of the records.
const (
	// Root holds the docker networks that all Engines share, by Place.Key.
	Root = state.OperRoot + "docknet/"
	// HostRoot holds those of one Engine: <host label>/<docker network id>.
	HostRoot = state.OperRoot + "docknets/"
	// NoEngine stands below HostRoot in the place of a docker network's id while a host has
	// no Engine that answers: nobody waits for its docker networks.
	NoEngine = "no-engine"
)

// Record is a docker network and its place.
type Record struct {
	ID          string `json:"id"` // Place.Key
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
func NewRecord(p Place, n dockerd.Network) Record {
	return Record{
		ID: p.Key(), TenantName: p.Tenant, NetworkName: p.Network, ServiceName: p.Group,
		DocknetUUID: n.ID, IPv6: n.IPv6, Internal: n.Internal,
	}
}

// Place returns where the record says the docker network's containers belong.
func (r Record) Place() Place { return Place{r.TenantName, r.NetworkName, r.ServiceName} }
