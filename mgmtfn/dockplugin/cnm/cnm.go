// Package cnm is the protocol between the Docker Engine and a network plugin: JSON over
// HTTP on a unix socket, one POST for each call. Member names are exact. It is the remote
// driver protocol of Engines 20.10 to 28; members that older and newer ones add or omit are
// ignored.
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

// Error is the reply of a call that failed. The network driver's clients read one member,
// those of the IPAM driver the other.
type Error struct {
	Err   string
	Error string
}

// Empty is the reply of calls that return nothing, and the body of those without arguments.
type Empty struct{}

// Capabilities is the answer to NetworkDriver.GetCapabilities.
type Capabilities struct {
	Scope             string // ScopeLocal or ScopeGlobal: where the Engine keeps the network
	ConnectivityScope string // how far containers reach
	// GwAllocChecker says that GwAllocCheck is supported (Engine 28 and later).
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
	// OptionInternal is true for a network without access to the outside.
	OptionInternal = "com.docker.network.internal"
	// OptionEnableIPv4 is false for a network without IPv4 (Engine 28 and later).
	OptionEnableIPv4 = "com.docker.network.enable_ipv4"
	// OptionMAC is the requested MAC address of an endpoint.
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

// AllocateNetworkResponse lists the options to pass to the nodes.
type AllocateNetworkResponse struct{ Options map[string]string }

// NetworkRequest names a network: DeleteNetwork, FreeNetwork.
type NetworkRequest struct{ NetworkID string }

// EndpointInterface is the container's interface. The plugin must not return what the
// Engine has set.
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

// CreateEndpointResponse contains what the plugin has chosen.
type CreateEndpointResponse struct{ Interface *EndpointInterface }

// EndpointRequest names an endpoint: DeleteEndpoint, EndpointOperInfo, Leave,
// ProgramExternalConnectivity, RevokeExternalConnectivity.
type EndpointRequest struct {
	NetworkID  string
	EndpointID string
}

// EndpointInfo is the answer to EndpointOperInfo.
type EndpointInfo struct{ Value map[string]any }

// JoinRequest connects a container to an endpoint.
type JoinRequest struct {
	NetworkID  string
	EndpointID string
	SandboxKey string
	Options    map[string]any
}

// InterfaceName is the host's interface that the Engine moves into the container, and its
// new name: DstPrefix and a number.
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

// JoinResponse says how the container is connected.
type JoinResponse struct {
	InterfaceName InterfaceName
	Gateway       string
	GatewayIPv6   string
	StaticRoutes  []StaticRoute
	// DisableGatewayService keeps the Engine from adding an interface of its own to a
	// container that has no default route.
	DisableGatewayService bool
}

// GwAllocCheckRequest asks whether a new network needs gateways of the IPAM driver.
type GwAllocCheckRequest struct{ Options map[string]any }

// GwAllocCheckResponse says for which families none is requested.
type GwAllocCheckResponse struct{ SkipIPv4, SkipIPv6 bool }

// AddressSpace is a name that Engines require and that has no meaning here.
const AddressSpace = "contiv"

// Fixed returns the reply to a call that always has the same one.
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

// Answer writes a reply.
func Answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // it does not matter if the Engine has gone
}
