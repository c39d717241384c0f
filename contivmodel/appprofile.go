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

// AppProfileKind describes app profiles; the key is tenantName:appProfileName.
func AppProfileKind() Kind[AppProfile, NoOper] {
	return Kind[AppProfile, NoOper]{
		Type:       "appProfile",
		Collection: "appProfiles",
		key:        func(p *AppProfile) *string { return &p.Key },
		ident:      func(p *AppProfile) string { return p.TenantName + ":" + p.AppProfileName },
		unlink:     func(p *AppProfile) { p.LinkSets, p.Links = AppProfileLinkSets{}, AppProfileLinks{} },
		check: func(p *AppProfile, c *checker) {
			c.name("appProfileName", p.AppProfileName, 64)
			c.name("tenantName", p.TenantName, 64)
		},
	}
}
