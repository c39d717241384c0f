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

// EndpointGroupType names the kind in links, store keys and errors.
const EndpointGroupType = "endpointGroup"

// EndpointGroupKind describes groups; the key is tenantName:groupName.
func EndpointGroupKind() Kind[EndpointGroup, EndpointGroupOper] {
	return Kind[EndpointGroup, EndpointGroupOper]{
		Type: EndpointGroupType, Collection: "endpointGroups", names: []string{tenantName, "groupName"},
		key: func(g *EndpointGroup) *string { return &g.Key },
		unlink: func(g *EndpointGroup) {
			g.LinkSets, g.Links = EndpointGroupLinkSets{}, EndpointGroupLinks{}
		},
		members: groupFields(),
	}
}

func groupFields() []member[EndpointGroup] {
	return []member[EndpointGroup]{
		optionalName(member[EndpointGroup]{
			Field: Field{Name: "cfgdTag", Text: "name of the group for container runtimes", Immutable: true},
			text:  func(g *EndpointGroup) *string { return &g.CfgdTag },
		}, 128),
		{
			Field: Field{Name: "extContractsGrps", Text: "names of external contracts groups", Refers: ExtContractsGroupType},
			list:  func(g *EndpointGroup) *[]string { return &g.ExtContractsGrps },
			links: func(g *EndpointGroup) *LinkSet { return &g.LinkSets.ExtContractsGrps },
		},
		name(member[EndpointGroup]{
			Field: Field{Name: "groupName", Text: "the group's name"},
			text:  func(g *EndpointGroup) *string { return &g.GroupName },
		}, 64),
		{
			Field: Field{Name: "ipPool", Text: "FIRST-LAST or one IPv4 address", Immutable: true},
			text:  func(g *EndpointGroup) *string { return &g.IPPool }, valid: isRange,
		},
		{
			Field: Field{Name: "netProfile", Text: "name of a net profile", MaxBytes: 64, Refers: NetprofileType},
			text:  func(g *EndpointGroup) *string { return &g.NetProfile },
			link:  func(g *EndpointGroup) *Link { return &g.Links.NetProfile },
		},
		name(member[EndpointGroup]{
			Field: Field{Name: "networkName", Text: "the network of the group", Immutable: true, Refers: NetworkType},
			text:  func(g *EndpointGroup) *string { return &g.NetworkName },
			link:  func(g *EndpointGroup) *Link { return &g.Links.Network },
		}, 64),
		{
			Field: Field{Name: "policies", Text: "names of policies", Refers: PolicyType},
			list:  func(g *EndpointGroup) *[]string { return &g.Policies },
			links: func(g *EndpointGroup) *LinkSet { return &g.LinkSets.Policies },
		},
		tenantOf(func(g *EndpointGroup) *string { return &g.TenantName }, func(g *EndpointGroup) *Link { return &g.Links.Tenant }),
	}
}

func isRange(s string) bool { _, ok := ParseRange(s); return ok }
