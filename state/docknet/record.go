package docknet

import "github.com/contiv/netplugin/state"

// Keys of the records.
const (
	// Root holds the docker networks that all Engines share, by Place.Key.
	Root = state.OperRoot + "docknet/"
	// HostRoot holds those of one Engine: <host label>/<docker network id>.
	HostRoot = state.OperRoot + "docknets/"
)

// Record is a docker network and its place.
type Record struct {
	ID          string `json:"id"` // Place.Key
	TenantName  string `json:"tenantName"`
	NetworkName string `json:"networkName"`
	ServiceName string `json:"serviceName"` // the group's name
	DocknetUUID string `json:"docknetUUID"` // the docker network's id
	// Internal is set for a docker network without a way out.
	Internal bool `json:"internal,omitempty"`
}

// NewRecord makes the record of a docker network.
func NewRecord(p Place, id string) Record {
	return Record{ID: p.Key(), TenantName: p.Tenant, NetworkName: p.Network, ServiceName: p.Group, DocknetUUID: id}
}

// Place returns where the record says the docker network's containers belong.
func (r Record) Place() Place { return Place{r.TenantName, r.NetworkName, r.ServiceName} }
