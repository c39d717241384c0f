package state

import "github.com/contiv/netplugin/utils/netspec"

// Encapsulations of a network (PktTagType).
const (
	EncapVLAN  = "vlan"
	EncapVXLAN = "vxlan"
)

// Kinds of network (NwType).
const (
	NetworkData  = "data"
	NetworkInfra = "infra"
)

// Global is what agents need of the global settings before they can start.
type Global struct {
	ID        string `json:"id"`
	InfraType string `json:"nw-infra-type"` // default | aci | aci-opflex
	FwdMode   string `json:"fwd-mode"`      // bridge | routing
	ARPMode   string `json:"arp-mode"`      // proxy | flood
	PvtSubnet string `json:"pvt-subnet"`    // CIDR, /16
}

// Network is a network as agents must realise it.
type Network struct {
	ID          string `json:"id"` // <network>.<tenant>
	Tenant      string `json:"tenant"`
	NetworkName string `json:"networkName"`
	netspec.Settings
	PktTagType  string `json:"pktTagType"`
	PktTag      int    `json:"pktTag"`    // the VLAN, or for vxlan the cluster-wide local VLAN
	ExtPktTag   int    `json:"extPktTag"` // the VNI; 0 for vlan
	SubnetIP    string `json:"subnetIP"`  // masked
	SubnetLen   uint   `json:"subnetLen"`
	Gateway     string `json:"gateway"`
	IPAddrRange string `json:"ipAddrRange"` // first-last
	IPv6Subnet  string `json:"ipv6SubnetIP"`
	IPv6Len     uint   `json:"ipv6SubnetLen"`
	IPv6Gateway string `json:"ipv6Gateway"`
	NetworkTag  string `json:"networkTag"`
}

// Endpoint is one attachment of a container to a network.
type Endpoint struct {
	ID               string            `json:"id"` // <network>.<tenant>-<endpointID>
	NetID            string            `json:"netID"`
	EndpointID       string            `json:"endpointID"`
	ServiceName      string            `json:"serviceName"` // the group's name
	EndpointGroupID  int               `json:"endpointGroupId"`
	EndpointGroupKey string            `json:"endpointGroupKey"` // <group>:<tenant>
	IPAddress        string            `json:"ipAddress"`
	IPv6Address      string            `json:"ipv6Address"`
	MacAddress       string            `json:"macAddress"`
	HomingHost       string            `json:"homingHost"` // host label of the agent that realises it
	IntfName         string            `json:"intfName"`
	VtepIP           string            `json:"vtepIP"` // never set: a host's VTEP is in its Host record
	Labels           map[string]string `json:"labels"`
	ContainerID      string            `json:"containerId"`
	EPCommonName     string            `json:"epCommonName"`
}

// EndpointGroup is a group as agents must realise it.
type EndpointGroup struct {
	ID              string `json:"id"` // <group>:<tenant>
	GroupName       string `json:"groupName"`
	TenantName      string `json:"tenantName"`
	NetworkName     string `json:"networkName"`
	EndpointGroupID int    `json:"endpointGroupId"` // cluster-wide, 1–32767
	PktTagType      string `json:"pktTagType"`
	PktTag          int    `json:"pktTag"`
	ExtPktTag       int    `json:"extPktTag"`
	DSCP            int    `json:"DSCP"`
	Bandwidth       string `json:"Bandwidth"`
	Burst           int    `json:"Burst"`
	IPPool          string `json:"IPPool"`
	GroupTag        string `json:"groupTag"`
}

// Host is what the cluster must know of a host to reach its containers. It outlives
// the host's registration: a host that is silent keeps its place in everybody's flows.
type Host struct {
	ID     string `json:"id"`     // the host label
	VtepIP string `json:"vtepIP"` // tunnel address
	CtrlIP string `json:"ctrlIP"`
	// Addresses are all that the host has on its links, these two among them: there, other
	// hosts keep their containers from the control plane.
	Addresses []string `json:"addresses,omitempty"`
	MTU       int      `json:"mtu,omitempty"` // bytes that fit through its tunnels; 0: it has not said
	// Node is the name of the host's Node; empty when it is no part of a cluster of
	// Kubernetes, or the cluster has not been seen to have that Node.
	Node string `json:"node,omitempty"`
}

// AddressClaim says who owns an address. Address keys use the canonical text of
// net/netip; a claim is created only, never overwritten.
type AddressClaim struct {
	// Owner is "endpoint/<endpoint id>", "gateway", "reserved/<who asked>" for an
	// address handed out by allocAddress before its endpoint exists, "service/<id>".
	Owner string `json:"owner"`
	// Held is set while the manager of a swarm has handed the address out: it stays
	// reserved before and after its endpoint, until the manager gives it back.
	Held bool `json:"held,omitempty"`
	// Reservation is the name that whoever reserved the address gave to the reservation. It
	// stays with the claim of the endpoint that took the address over.
	Reservation string `json:"reservation,omitempty"`
	// Unreleased is set while an endpoint has an address that a client without a name for
	// its reservation may still give back; ReservedBy is that client's host, or empty.
	Unreleased bool   `json:"unreleased,omitempty"`
	ReservedBy string `json:"reservedBy,omitempty"`
}

// LateReleases are the releases that may still come for an address which its former owners
// no longer have: they must not end the reservation of the next one.
type LateReleases struct {
	From []string `json:"from"` // hosts of the former owners; empty for clients that name none
	// Owed are hosts whose release is still to come although one that named no host was
	// taken for it: theirs is then the other one's.
	Owed []string `json:"owed,omitempty"`
}

// TagClaim says which object holds a tag or a group id.
type TagClaim struct {
	Owner string `json:"owner"` // "network/<id>" or "group/<id>"
}

// OperEndpoint is what an agent did for one of its endpoints.
type OperEndpoint struct {
	ID          string `json:"id"`
	NetID       string `json:"netID"`
	EndpointID  string `json:"endpointID"`
	ServiceName string `json:"serviceName"`
	ContUUID    string `json:"contUUID"`
	IPAddress   string `json:"ipAddress"`
	IPv6Address string `json:"ipv6Address"`
	MacAddress  string `json:"macAddress"`
	HomingHost  string `json:"homingHost"`
	IntfName    string `json:"intfName"`
	PortName    string `json:"portName"` // container side of the veth, vportN
	VtepIP      string `json:"vtepIP"`
}

// OperDriver is the agent's port bookkeeping, kept for tools that read it.
type OperDriver struct {
	ID          string                 `json:"id"`
	CurrPortNum int                    `json:"currPortNum"`
	LocalEpInfo map[string]LocalEpInfo `json:"LocalEpInfo"`
}

// LocalEpInfo is one local endpoint in OperDriver.
type LocalEpInfo struct {
	OVSPortName string `json:"Ovsportname"`
	EpgKey      string `json:"EpgKey"`
	BridgeType  string `json:"BridgeType"` // vlan | vxlan
}

// Bgp is the BGP speaker that the agent of one host is to run.
type Bgp struct {
	ID         string `json:"id"` // the host label
	Hostname   string `json:"hostname"`
	RouterIP   string `json:"router-ip"` // ADDRESS[-OCTET]/LENGTH
	As         string `json:"as"`
	NeighborAs string `json:"neighbor-as"`
	Neighbor   string `json:"neighbor"` // IPv4 address

	RouterIP6 string   `json:"router-ip6,omitempty"` // ADDRESS/LENGTH
	Neighbors []string `json:"neighbors,omitempty"`  // further ones: ADDRESS or ADDRESS@AS
	Password  string   `json:"password,omitempty"`   // of all sessions (RFC 2385)
	// Secret names the password that the host has to ask the leader for; it changes with the
	// password. Empty: the password is here, or there is none.
	Secret string `json:"secret,omitempty"`

	TTLSecurity bool `json:"ttl-security,omitempty"` // of all sessions (RFC 5082)
}
