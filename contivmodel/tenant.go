package contivmodel

// Tenant is a name space for networks, groups and policies.
type Tenant struct {
	Key            string         `json:"key"`
	DefaultNetwork string         `json:"defaultNetwork,omitempty"` // kept for the user; means nothing
	TenantName     string         `json:"tenantName,omitempty"`
	LinkSets       TenantLinkSets `json:"link-sets"`
}

// TenantLinkSets are the objects that belong to a tenant.
type TenantLinkSets struct {
	AppProfiles    LinkSet `json:"AppProfiles,omitempty"`
	EndpointGroups LinkSet `json:"EndpointGroups,omitempty"`
	NetProfiles    LinkSet `json:"NetProfiles,omitempty"`
	Networks       LinkSet `json:"Networks,omitempty"`
	Policies       LinkSet `json:"Policies,omitempty"`
	Servicelbs     LinkSet `json:"Servicelbs,omitempty"`
	VolumeProfiles LinkSet `json:"VolumeProfiles,omitempty"`
	Volumes        LinkSet `json:"Volumes,omitempty"`
}

// TenantOper is what is in use by a tenant.
type TenantOper struct {
	EndpointGroups   []EndpointGroupOper `json:"endpointGroups,omitempty"`
	Endpoints        []EndpointOper      `json:"endpoints,omitempty"`
	Networks         []NetworkOper       `json:"networks,omitempty"`
	Policies         []PolicyOper        `json:"policies,omitempty"`
	Servicelbs       []ServiceLBOper     `json:"servicelbs,omitempty"`
	TotalAppProfiles int                 `json:"totalAppProfiles,omitempty"`
	TotalEPGs        int                 `json:"totalEPGs,omitempty"`
	TotalEndpoints   int                 `json:"totalEndpoints,omitempty"`
	TotalNetprofiles int                 `json:"totalNetprofiles,omitempty"`
	TotalNetworks    int                 `json:"totalNetworks,omitempty"`
	TotalPolicies    int                 `json:"totalPolicies,omitempty"`
	TotalServicelbs  int                 `json:"totalServicelbs,omitempty"`
}

// DefaultTenant is the tenant that exists from the start.
const DefaultTenant = "default"

// TenantType names the kind in links, store keys and errors.
const TenantType = "tenant"

// TenantKind describes tenants; the key is the tenant's name.
func TenantKind() Kind[Tenant, TenantOper] {
	return Kind[Tenant, TenantOper]{
		Type: TenantType, Collection: "tenants", names: []string{tenantName}, immutable: true,
		key:    func(t *Tenant) *string { return &t.Key },
		unlink: func(t *Tenant) { t.LinkSets = TenantLinkSets{} },
		members: []member[Tenant]{
			optionalName(member[Tenant]{
				Field: Field{Name: "defaultNetwork", Text: "stored for users; has no effect"},
				text:  func(t *Tenant) *string { return &t.DefaultNetwork },
			}, 64),
			name(member[Tenant]{
				Field: Field{Name: tenantName, Text: "the tenant's name"},
				text:  func(t *Tenant) *string { return &t.TenantName },
			}, 64),
		},
	}
}
