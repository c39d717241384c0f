// Package cnm is what the Docker Engine and a network plugin say to each other: JSON
// over HTTP on a unix socket, one POST for each call. Member names are exact. It is the
// remote driver protocol of Engines 20.10 to 28; what older and newer ones add or leave
// out is ignored.
package cnm

import (
	"encoding/json"
	"net/http"
)

// ContentType is that of requests and of answers.
const ContentType = "application/vnd.docker.plugins.v1.2+json"

// Paths of the calls that are about the plugin as a whole.
const (
	PathActivate   = "/Plugin.Activate"
	PathDeactivate = "/Plugin.Deactivate"
)

// Names of the two protocols a plugin may implement, and the beginnings of their paths.
const (
	NetworkDriver = "NetworkDriver"
	IpamDriver    = "IpamDriver"
)

// Scopes of a network: known to one Engine, or to all that share a store or a swarm.
const (
	ScopeLocal  = "local"
	ScopeGlobal = "global"
)

// Activation says what a plugin implements.
type Activation struct{ Implements []string }

// Error is the answer of a call that failed. The network driver's clients read one
// member, those of the IPAM driver the other.
type Error struct {
	Err   string
	Error string
}

// Empty is the answer of calls that return nothing, and the body of those that say
// nothing.
type Empty struct{}

// Capabilities is the answer to NetworkDriver.GetCapabilities.
type Capabilities struct {
	Scope             string // ScopeLocal or ScopeGlobal: where the Engine keeps the network
	ConnectivityScope string // how far containers reach
	// GwAllocChecker says that GwAllocCheck is answered (Engine 28 and later).
	GwAllocChecker bool
}

// IPAMData is a pool of a network.
type IPAMData struct {
	AddressSpace string
	Pool         string         // CIDR
	Gateway      string         // CIDR: address with the pool's length
	AuxAddresses map[string]any `json:",omitempty"`
}

// Options of CreateNetwork.
const (
	// OptionGeneric holds what the user gave with docker network create -o.
	OptionGeneric = "com.docker.network.generic"
	// OptionInternal is true for a network without a way out.
	OptionInternal = "com.docker.network.internal"
	// OptionEnableIPv4 is false for a network without IPv4 (Engine 28 and later).
	OptionEnableIPv4 = "com.docker.network.enable_ipv4"
	// OptionMAC is the MAC address an endpoint is to have.
	OptionMAC = "com.docker.network.endpoint.macaddress"
)

// CreateNetworkRequest says that the Engine has made a network.
type CreateNetworkRequest struct {
	NetworkID string
	Options   map[string]any
	IPv4Data  []IPAMData
	IPv6Data  []IPAMData
}

// AllocateNetworkRequest is CreateNetworkRequest from the manager of a swarm.
type AllocateNetworkRequest struct {
	NetworkID string
	Options   map[string]string
	IPv4Data  []IPAMData
	IPv6Data  []IPAMData
}

// AllocateNetworkResponse says which options nodes are to be told.
type AllocateNetworkResponse struct{ Options map[string]string }

// NetworkRequest names a network: DeleteNetwork, FreeNetwork.
type NetworkRequest struct{ NetworkID string }

// EndpointInterface is the container's interface. The plugin must not return what the
// Engine has given.
type EndpointInterface struct {
	Address     string `json:",omitempty"` // CIDR
	AddressIPv6 string `json:",omitempty"` // CIDR
	MacAddress  string `json:",omitempty"`
}

// CreateEndpointRequest asks for an endpoint.
type CreateEndpointRequest struct {
	NetworkID  string
	EndpointID string
	Interface  *EndpointInterface
	Options    map[string]any
}

// CreateEndpointResponse says what the plugin has chosen.
type CreateEndpointResponse struct{ Interface *EndpointInterface }

// EndpointRequest names an endpoint: DeleteEndpoint, EndpointOperInfo, Leave,
// ProgramExternalConnectivity, RevokeExternalConnectivity.
type EndpointRequest struct {
	NetworkID  string
	EndpointID string
}

// EndpointInfo is the answer to EndpointOperInfo.
type EndpointInfo struct{ Value map[string]any }

// JoinRequest says that a container takes an endpoint.
type JoinRequest struct {
	NetworkID  string
	EndpointID string
	SandboxKey string
	Options    map[string]any
}

// InterfaceName says which interface of the host the Engine is to move, and what it is
// to be called inside: DstPrefix and a number.
type InterfaceName struct {
	SrcName   string
	DstPrefix string
}

// StaticRoute is a route of the container.
type StaticRoute struct {
	Destination string // CIDR
	RouteType   int    // 0: by NextHop, 1: on the link
	NextHop     string `json:",omitempty"`
}

// JoinResponse says how the container is to be connected.
type JoinResponse struct {
	InterfaceName InterfaceName
	Gateway       string
	GatewayIPv6   string
	StaticRoutes  []StaticRoute
	// DisableGatewayService keeps the Engine from adding an interface of its own to a
	// container that has no default route.
	DisableGatewayService bool
}

// GwAllocCheckRequest asks whether a network to be made needs gateways of the IPAM driver.
type GwAllocCheckRequest struct{ Options map[string]any }

// GwAllocCheckResponse says for which family none is to be requested.
type GwAllocCheckResponse struct{ SkipIPv4, SkipIPv6 bool }

// AddressSpace is a name that Engines want and that means nothing here.
const AddressSpace = "contiv"

// Fixed returns the answer to a call that is answered alike whatever there is.
func Fixed(path string, c Capabilities) (answer any, ok bool) {
	switch path {
	case PathActivate:
		return Activation{Implements: []string{NetworkDriver, IpamDriver}}, true
	case "/" + NetworkDriver + ".GetCapabilities":
		return c, true
	case "/" + IpamDriver + ".GetCapabilities":
		return IPAMCapabilities{}, true
	case "/" + IpamDriver + ".GetDefaultAddressSpaces":
		return AddressSpaces{LocalDefaultAddressSpace: AddressSpace, GlobalDefaultAddressSpace: AddressSpace}, true
	case "/" + NetworkDriver + ".EndpointOperInfo":
		return EndpointInfo{}, true
	case PathDeactivate, "/" + NetworkDriver + ".DiscoverNew", "/" + NetworkDriver + ".DiscoverDelete", "/" + IpamDriver + ".ReleasePool":
		return Empty{}, true
	}
	return nil, false
}

// Answer writes an answer.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an Engine that has gone is nobody's error
}
