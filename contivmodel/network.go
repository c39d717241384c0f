package contivmodel

// Network is one subnet with its isolation tag.
type Network struct {
	Key         string          `json:"key"`
	CfgdTag     string          `json:"cfgdTag,omitempty"`
	Encap       string          `json:"encap,omitempty"` // vlan | vxlan
	Gateway     string          `json:"gateway,omitempty"`
	IPv6Gateway string          `json:"ipv6Gateway,omitempty"`
	IPv6Subnet  string          `json:"ipv6Subnet,omitempty"`
	NetworkName string          `json:"networkName,omitempty"`
	NwType      string          `json:"nwType,omitempty"` // data (default) | infra
	PktTag      int             `json:"pktTag,omitempty"` // VLAN or VNI; 0 = lowest free
	Subnet      string          `json:"subnet,omitempty"` // ADDRESS/LENGTH or FIRST-LAST/LENGTH
	TenantName  string          `json:"tenantName,omitempty"`
	LinkSets    NetworkLinkSets `json:"link-sets"`
	Links       NetworkLinks    `json:"links"`
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

// NetworkKind describes networks; the key is tenantName:networkName.
func NetworkKind() Kind[Network, NetworkOper] {
	return Kind[Network, NetworkOper]{
		Type:       "network",
		Collection: "networks",
		key:        func(n *Network) *string { return &n.Key },
		ident:      func(n *Network) string { return n.TenantName + ":" + n.NetworkName },
		unlink:     func(n *Network) { n.LinkSets, n.Links = NetworkLinkSets{}, NetworkLinks{} },
		check:      checkNetwork,
	}
}

func checkNetwork(n *Network, c *checker) {
	c.optName("cfgdTag", n.CfgdTag, 128)
	c.oneOf("encap", n.Encap, "vlan", "vxlan")
	if n.Gateway != "" {
		_, ok := ParseIP4(n.Gateway)
		c.format("gateway", ok)
	}
	if n.IPv6Gateway != "" {
		_, ok := ParseIP6(n.IPv6Gateway)
		c.format("ipv6Gateway", ok)
	}
	if n.IPv6Subnet != "" {
		_, ok := ParseCIDR6(n.IPv6Subnet)
		c.format("ipv6Subnet", ok)
	}
	c.name("networkName", n.NetworkName, 64)
	if n.NwType == "" {
		n.NwType = "data"
	}
	c.oneOf("nwType", n.NwType, "infra", "data")
	c.bound("pktTag", n.PktTag, 0, maxPktTag)
	c.format("subnet", IsSubnet(n.Subnet))
	c.name("tenantName", n.TenantName, 64)
}
