package contivmodel

// EndpointGroup is a set of endpoints of one network that are treated alike.
type EndpointGroup struct {
	Key              string                `json:"key"`
	CfgdTag          string                `json:"cfgdTag,omitempty"`
	ExtContractsGrps []string              `json:"extContractsGrps,omitempty"`
	GroupName        string                `json:"groupName,omitempty"`
	IPPool           string                `json:"ipPool,omitempty"` // FIRST-LAST, or one address
	NetProfile       string                `json:"netProfile,omitempty"`
	NetworkName      string                `json:"networkName,omitempty"`
	Policies         []string              `json:"policies,omitempty"`
	TenantName       string                `json:"tenantName,omitempty"`
	LinkSets         EndpointGroupLinkSets `json:"link-sets"`
	Links            EndpointGroupLinks    `json:"links"`
}

// EndpointGroupLinkSets are a group's relations to many.
type EndpointGroupLinkSets struct {
	ExtContractsGrps LinkSet `json:"ExtContractsGrps,omitempty"`
	MatchRules       LinkSet `json:"MatchRules,omitempty"` // rules that name this group
	Policies         LinkSet `json:"Policies,omitempty"`
	Services         LinkSet `json:"Services,omitempty"`
}

// EndpointGroupLinks are a group's relations to one.
type EndpointGroupLinks struct {
	AppProfile Link `json:"AppProfile"`
	NetProfile Link `json:"NetProfile"`
	Network    Link `json:"Network"`
	Tenant     Link `json:"Tenant"`
}

// EndpointGroupOper is what a group has in use. The address lists are those of its
// own pool and empty without one.
type EndpointGroupOper struct {
	AllocatedIPAddresses string         `json:"allocatedIPAddresses,omitempty"`
	AvailableIPAddresses string         `json:"availableIPAddresses,omitempty"`
	Endpoints            []EndpointOper `json:"endpoints,omitempty"`
	ExternalPktTag       int            `json:"externalPktTag,omitempty"`
	GroupTag             string         `json:"groupTag,omitempty"`
	NumEndpoints         int            `json:"numEndpoints,omitempty"`
	PktTag               int            `json:"pktTag,omitempty"`
}

// EndpointGroupKind describes groups; the key is tenantName:groupName.
func EndpointGroupKind() Kind[EndpointGroup, EndpointGroupOper] {
	return Kind[EndpointGroup, EndpointGroupOper]{
		Type:       "endpointGroup",
		Collection: "endpointGroups",
		key:        func(g *EndpointGroup) *string { return &g.Key },
		ident:      func(g *EndpointGroup) string { return g.TenantName + ":" + g.GroupName },
		unlink: func(g *EndpointGroup) {
			g.LinkSets, g.Links = EndpointGroupLinkSets{}, EndpointGroupLinks{}
		},
		check: func(g *EndpointGroup, c *checker) {
			c.optName("cfgdTag", g.CfgdTag, 128)
			c.name("groupName", g.GroupName, 64)
			if g.IPPool != "" {
				_, ok := ParseRange(g.IPPool)
				c.format("ipPool", ok)
			}
			c.limit("netProfile", g.NetProfile, 64)
			c.name("networkName", g.NetworkName, 64)
			c.name("tenantName", g.TenantName, 64)
		},
	}
}
