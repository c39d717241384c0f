package masterapi

import (
	"net/netip"
	"net/url"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// Agents write nothing to the store; what their hosts have in it, the leader writes for them.
// The calls are below PathHosts, then the host's label, then one of these: records (PUT) and
// presence (PUT, DELETE). A certificate is good for its own label only.
const (
	PathHosts    = "/plugin/host/"
	HostRecord   = "records"
	HostPresence = "presence"
)

// HostPath is the path of what a host has.
func HostPath(label, what string) string { return PathHosts + url.PathEscape(label) + "/" + what }

// MaxHostRecords is how many records one PUT may carry.
const MaxHostRecords = 256

// HostRecords are the records of one host that change; null removes one.
type HostRecords struct {
	Host *state.Host `json:"host,omitempty"`
	// Endpoints are the operational records, by endpoint id. One whose endpoint is not, or not
	// any more, is left out.
	Endpoints map[string]*state.OperEndpoint `json:"endpoints,omitempty"`
	// DockerNetworks are those of the host's Engine, by docker network id.
	DockerNetworks map[string]*docknet.Record `json:"dockerNetworks,omitempty"`
	// NoEngine says whether the host is without an Engine that answers.
	NoEngine *bool `json:"noEngine,omitempty"`
	// Swarm are docker networks that all Engines of a swarm share.
	Swarm []docknet.Record `json:"swarm,omitempty"`
	// SwarmGone are such that are to be removed, if they are stored exactly so.
	SwarmGone []docknet.Record `json:"swarmGone,omitempty"`
}

// Presence says that an agent lives, and where. It is to be repeated;
// without it the host counts as not registered after objdb.ServiceTTL.
type Presence struct {
	CtrlIP    netip.Addr `json:"ctrlIP"`
	VTEP      netip.Addr `json:"vtep"`
	VXLANPort int        `json:"vxlanPort"`
}
