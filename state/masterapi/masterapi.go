// Package masterapi holds the bodies of netmaster's /plugin/ calls, which agents
// make on behalf of container runtimes. Member names are outward surface.
package masterapi

import (
	"net/url"

	"github.com/contiv/netplugin/state"
)

// Paths of the calls; all are POSTs with Content-Type application/json.
const (
	PathAllocAddress   = "/plugin/allocAddress"
	PathReleaseAddress = "/plugin/releaseAddress"
	PathCreateEndpoint = "/plugin/createEndpoint"
	PathDeleteEndpoint = "/plugin/deleteEndpoint"
	PathUpdateEndpoint = "/plugin/updateEndpoint"
)

// PathBGPSecret is where the agent of a host asks for the password of its BGP speaker: GET
// BGPSecret.
func PathBGPSecret(host string) string { return "/plugin/host/" + url.PathEscape(host) + "/bgp-secret" }

// BGPSecret is the password of a BGP speaker; empty for none.
type BGPSecret struct{ Password string }

// RevisionHeader carries, in the answer to a call that changed something, the store
// revision of the change, so that a caller that watches the store knows when it has
// seen it.
const RevisionHeader = "X-Contiv-Revision"

// SettingsHeader is the same for the global settings, which agents follow by themselves.
// Answers about objects of the model carry both headers: a host that has applied the two
// revisions has applied the change, whatever it was.
const SettingsHeader = "X-Contiv-Settings-Revision"

// NoTenant is what an error says, among other things, when it is the tenant that is missing.
func NoTenant(name string) string { return "tenant " + name + " does not exist" }

// AllocAddressRequest asks for an address of a network, a group or a pool.
type AllocAddressRequest struct {
	NetworkID            string // <net>.<tenant>, <net>:<group>.<tenant>, or empty
	AddressPool          string // CIDR, optionally :<tenant>
	PreferredIPv4Address string
	// Held is set by the manager of a swarm, which keeps the address until it gives it
	// back, whatever becomes of endpoints. It may ask for what it holds already.
	Held bool `json:",omitempty"`
	// Host is the label of the host that asks. It may ask again for an address that it has
	// reserved: an answer may have been lost, and an address not been given back.
	Host string `json:",omitempty"`
	// Reservation names the reservation, so that a release can say which one it ends. The
	// client chooses a name that it never uses again.
	Reservation string `json:",omitempty"`
}

// AllocAddressResponse repeats NetworkID; IPv4Address carries either family, as CIDR.
type AllocAddressResponse struct {
	NetworkID   string
	IPv4Address string
}

// ReleaseAddressRequest gives an address back.
type ReleaseAddressRequest struct {
	NetworkID   string // everything from a '|' on is ignored
	IPv4Address string
	// Held, without an address, says that the manager of a swarm starts over: it holds no
	// address of the network until it asks for it again. With Gone it will ask for none: its
	// docker network has been removed.
	Held, Gone bool `json:",omitempty"`
	// Reservation is the one to end, and no other; Host is whose. Without both, a release
	// ends a reservation without a name, if no former owner of the address has a release to
	// come: then it counts as that one's.
	Host        string `json:",omitempty"`
	Reservation string `json:",omitempty"`
}

// ReleaseAddressResponse is the answer; Status is "success".
type ReleaseAddressResponse struct{ Status string }

// ConfigEP says what endpoint is wanted and where.
type ConfigEP struct {
	Container   string
	Host        string
	IPAddress   string
	IPv6Address string
	ServiceName string
	// MacAddress that the container has; empty: the one that belongs to its address.
	MacAddress string `json:",omitempty"`
}

// CreateEndpointRequest asks for an endpoint; asking again returns the same one.
type CreateEndpointRequest struct {
	TenantName   string
	NetworkName  string
	ServiceName  string
	EndpointID   string
	EPCommonName string
	ConfigEP     ConfigEP
}

// CreateEndpointResponse carries the endpoint's record.
type CreateEndpointResponse struct{ EndpointConfig state.Endpoint }

// DeleteEndpointRequest removes an endpoint.
type DeleteEndpointRequest struct {
	TenantName  string
	NetworkName string
	ServiceName string
	EndpointID  string
	IPv4Address string
}

// DeleteEndpointResponse carries the record that was removed.
type DeleteEndpointResponse struct{ EndpointConfig state.Endpoint }

// UpdateEndpointRequest reports a container event.
type UpdateEndpointRequest struct {
	IPAddress    string
	ContainerID  string
	Labels       map[string]string
	Tenant       string
	Network      string
	Event        string // start | die
	EndpointID   string
	EPCommonName string
}

// UpdateEndpointResponse repeats the address.
type UpdateEndpointResponse struct{ IPAddress string }
