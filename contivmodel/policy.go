package contivmodel

// Policy is a set of rules that groups can be put under.
type Policy struct {
	Audit      bool           `json:"audit,omitempty"`
	Key        string         `json:"key"`
	Mode       string         `json:"mode,omitempty"` // enforce (also if empty) | audit
	PolicyName string         `json:"policyName,omitempty"`
	TenantName string         `json:"tenantName,omitempty"`
	LinkSets   PolicyLinkSets `json:"link-sets"`
	Links      PolicyLinks    `json:"links"`
}

// PolicyLinkSets are a policy's rules and the groups under it.
type PolicyLinkSets struct {
	EndpointGroups LinkSet `json:"EndpointGroups,omitempty"`
	Rules          LinkSet `json:"Rules,omitempty"`
}

// PolicyLinks are the objects a policy stands on.
type PolicyLinks struct {
	Tenant Link `json:"Tenant"`
}

// PolicyOper is what is in use under a policy: the endpoints of all its groups.
type PolicyOper struct {
	Endpoints        []EndpointOper `json:"endpoints,omitempty"`
	NumEndpoints     int            `json:"numEndpoints,omitempty"`
	PolicyViolations int            `json:"policyViolations,omitempty"` // never set
	// RuleHits says how often each rule has decided, on all hosts that answered.
	RuleHits []RuleHits `json:"ruleHits,omitempty"`
	// SilentHosts are the hosts whose agents did not say what their rules decided.
	SilentHosts []string `json:"silentHosts,omitempty"`
}

// RuleHits is how often a rule has decided: the packets that open a connection, or are
// denied, and their bytes.
type RuleHits struct {
	Rule    string `json:"rule"` // tenantName:policyName:ruleId
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// PolicyType names the kind in links, store keys and errors.
const PolicyType = "policy"

// PolicyKind describes policies; the key is tenantName:policyName.
func PolicyKind() Kind[Policy, PolicyOper] {
	return Kind[Policy, PolicyOper]{
		Type: PolicyType, Collection: "policys", names: []string{tenantName, "policyName"},
		key:    func(p *Policy) *string { return &p.Key },
		unlink: func(p *Policy) { p.LinkSets, p.Links = PolicyLinkSets{}, PolicyLinks{} },
		members: []member[Policy]{
			{
				Field: Field{Name: "audit", Text: "hosts write the connections that its rules decide to their audit files"},
				on:    func(p *Policy) *bool { return &p.Audit },
			},
			{
				Field: Field{Name: "mode", Text: "audit: its rules decide nothing, and log what they would have decided; empty: enforce", Values: modes},
				text:  func(p *Policy) *string { return &p.Mode },
			},
			name(member[Policy]{
				Field: Field{Name: "policyName", Text: "the policy's name"},
				text:  func(p *Policy) *string { return &p.PolicyName },
			}, 64),
			tenantOf(func(p *Policy) *string { return &p.TenantName }, func(p *Policy) *Link { return &p.Links.Tenant }),
		},
	}
}
