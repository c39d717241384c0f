package contivmodel

// AppProfile is an application: groups that go together.
type AppProfile struct {
	Key            string             `json:"key"`
	AppProfileName string             `json:"appProfileName,omitempty"`
	EndpointGroups []string           `json:"endpointGroups,omitempty"` // names, of the same tenant
	TenantName     string             `json:"tenantName,omitempty"`
	LinkSets       AppProfileLinkSets `json:"link-sets"`
	Links          AppProfileLinks    `json:"links"`
}

// AppProfileLinkSets are the groups of an app profile.
type AppProfileLinkSets struct {
	EndpointGroups LinkSet `json:"EndpointGroups,omitempty"`
}

// AppProfileLinks are the objects an app profile stands on.
type AppProfileLinks struct {
	Tenant Link `json:"Tenant"`
}

// AppProfileType names the kind in links, store keys and errors.
const AppProfileType = "appProfile"

// AppProfileKind describes app profiles; the key is tenantName:appProfileName.
func AppProfileKind() Kind[AppProfile, NoOper] {
	return Kind[AppProfile, NoOper]{
		Type: AppProfileType, Collection: "appProfiles", names: []string{tenantName, "appProfileName"},
		key:    func(p *AppProfile) *string { return &p.Key },
		unlink: func(p *AppProfile) { p.LinkSets, p.Links = AppProfileLinkSets{}, AppProfileLinks{} },
		members: []member[AppProfile]{
			name(member[AppProfile]{
				Field: Field{Name: "appProfileName", Text: "the app profile's name"},
				text:  func(p *AppProfile) *string { return &p.AppProfileName },
			}, 64),
			{
				Field: Field{Name: "endpointGroups", Text: "names of groups", Refers: EndpointGroupType},
				list:  func(p *AppProfile) *[]string { return &p.EndpointGroups },
				links: func(p *AppProfile) *LinkSet { return &p.LinkSets.EndpointGroups },
			},
			tenantOf(func(p *AppProfile) *string { return &p.TenantName }, func(p *AppProfile) *Link { return &p.Links.Tenant }),
		},
	}
}
