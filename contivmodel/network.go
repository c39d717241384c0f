package contivmodel

import "github.com/contiv/netplugin/utils/netspec"

// Network is one subnet with its isolation tag.
type Network struct {
	Key         string `json:"key"`
	CfgdTag     string `json:"cfgdTag,omitempty"`
	Encap       string `json:"encap,omitempty"` // vlan | vxlan
	Gateway     string `json:"gateway,omitempty"`
	IPv6Gateway string `json:"ipv6Gateway,omitempty"`
	IPv6Subnet  string `json:"ipv6Subnet,omitempty"`
	NetworkName string `json:"networkName,omitempty"`
	netspec.Settings
	PktTag     int             `json:"pktTag,omitempty"` // VLAN or VNI; 0 = lowest free
	Subnet     string          `json:"subnet,omitempty"` // ADDRESS/LENGTH or FIRST-LAST/LENGTH
	TenantName string          `json:"tenantName,omitempty"`
	LinkSets   NetworkLinkSets `json:"link-sets"`
	Links      NetworkLinks    `json:"links"`
}

// NetworkLinkSets are the objects that stand on a network.
type NetworkLinkSets struct {
	EndpointGroups LinkSet `json:"EndpointGroups,omitempty"`
	Servicelbs     LinkSet `json:"Servicelbs,omitempty"`
	Services       LinkSet `json:"Services,omitempty"`
}

// NetworkLinks are the objects a network stands on.
type NetworkLinks struct {
	Tenant Link `json:"Tenant"`
}

// NetworkOper is what a network has in use.
type NetworkOper struct {
	// AllocatedAddressesCount counts IPv4 addresses handed out, without the gateway.
	AllocatedAddressesCount int `json:"allocatedAddressesCount,omitempty"`
	// AllocatedIPAddresses and AvailableIPAddresses list runs of IPv4 addresses, as
	// "60.1.1.1-60.1.1.2, 60.1.1.254".
	AllocatedIPAddresses string         `json:"allocatedIPAddresses,omitempty"`
	AvailableIPAddresses string         `json:"availableIPAddresses,omitempty"`
	Endpoints            []EndpointOper `json:"endpoints,omitempty"`
	ExternalPktTag       int            `json:"externalPktTag,omitempty"` // VNI; 0 for vlan
	NetworkTag           string         `json:"networkTag,omitempty"`
	NumEndpoints         int            `json:"numEndpoints,omitempty"`
	PktTag               int            `json:"pktTag,omitempty"` // VLAN; for vxlan the local one
}

// NetworkType names the kind in links, store keys and errors.
const NetworkType = "network"

// NetworkKind describes networks; the key is tenantName:networkName.
func NetworkKind() Kind[Network, NetworkOper] {
	return Kind[Network, NetworkOper]{
		Type: NetworkType, Collection: "networks", names: []string{tenantName, "networkName"}, immutable: true,
		key:     func(n *Network) *string { return &n.Key },
		unlink:  func(n *Network) { n.LinkSets, n.Links = NetworkLinkSets{}, NetworkLinks{} },
		members: networkFields(),
	}
}

func networkFields() []member[Network] {
	return []member[Network]{
		optionalName(member[Network]{
			Field: Field{Name: "cfgdTag", Text: "name of the network for container runtimes"},
			text:  func(n *Network) *string { return &n.CfgdTag },
		}, 128),
		{
			Field: Field{Name: "encap", Text: "how packets travel between hosts", Required: true, Values: []string{"vlan", "vxlan"}},
			text:  func(n *Network) *string { return &n.Encap },
		},
		{
			Field: Field{Name: "gateway", Text: "IPv4 address", Format: "ipv4"},
			text:  func(n *Network) *string { return &n.Gateway }, valid: isIP4,
		},
		{
			Field: Field{Name: "ipv6Gateway", Text: "IPv6 address", Format: "ipv6"},
			text:  func(n *Network) *string { return &n.IPv6Gateway }, valid: isIP6,
		},
		{
			Field: Field{Name: "ipv6Subnet", Text: "ADDRESS/LENGTH, length 1-127"},
			text:  func(n *Network) *string { return &n.IPv6Subnet }, valid: isCIDR6,
		},
		name(member[Network]{
			Field: Field{Name: "networkName", Text: "the network's name"},
			text:  func(n *Network) *string { return &n.NetworkName },
		}, 64),
		{
			Field: Field{Name: "nwType", Text: "what the network is for", Values: []string{"infra", "data"}, Default: "data"},
			text:  func(n *Network) *string { return &n.NwType },
		},
		{
			Field:  Field{Name: "pktTag", Text: "VLAN or VNI; 0 = the lowest free", High: maxPktTag},
			number: func(n *Network) *int { return &n.PktTag },
		},
		{
			Field: Field{Name: "subnet", Text: "ADDRESS/LENGTH or FIRST-LAST/LENGTH, IPv4, length 8-31", Required: true},
			text:  func(n *Network) *string { return &n.Subnet }, valid: IsSubnet,
		},
		tenantOf(func(n *Network) *string { return &n.TenantName }, func(n *Network) *Link { return &n.Links.Tenant }),
	}
}

func isCIDR6(s string) bool { _, ok := ParseCIDR6(s); return ok }
