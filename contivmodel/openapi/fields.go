package openapi

// constraint is what a field's type does not say about it.
type constraint struct {
	what     string   // what it means
	required bool     // may not be empty
	words    []string // the words it may be
	most     int      // bytes; 0 = no limit
	low      int      // of integers
	high     int      // of integers; 0 = no limit
	preset   any      // what an absent field becomes
}

func (c constraint) apply(object, field *schema, name string) {
	if field.Ref == "" {
		field.Description, field.Enum, field.MaxLength, field.Default = c.what, c.words, c.most, c.preset
	}
	if c.high != 0 {
		field.Minimum, field.Maximum = &c.low, &c.high
	}
	if c.required {
		object.Required = append(object.Required, name)
	}
}

// keyForm says what the key of a kind is made of.
func keyForm(typ string) string {
	switch typ {
	case "tenant":
		return "tenantName"
	case "global", "aciGw":
		return `always "` + typ + `"`
	case "Bgp":
		return "hostname"
	case "network":
		return "tenantName:networkName"
	case "endpointGroup":
		return "tenantName:groupName"
	case "policy":
		return "tenantName:policyName"
	case "rule":
		return "tenantName:policyName:ruleId"
	case "netprofile":
		return "tenantName:profileName"
	case "appProfile":
		return "tenantName:appProfileName"
	case "serviceLB":
		return "tenantName:serviceName"
	case "extContractsGroup":
		return "tenantName:contractsGroupName"
	default:
		return "tenantName:" + typ + "Name"
	}
}

func named(what string, most int) constraint {
	return constraint{what: what + ": labels of letters, digits and hyphens, joined by dots", required: true, most: most}
}

// constraints returns what is known of the fields of a kind.
func constraints(typ string) map[string]constraint {
	tenant := named("the tenant it belongs to", 64)
	switch typ {
	case "tenant":
		return map[string]constraint{
			"defaultNetwork": {what: "kept for the user; means nothing", most: 64},
			"tenantName":     named("the tenant's name", 64),
		}
	case "network":
		return map[string]constraint{
			"cfgdTag":     {what: "name towards container runtimes", most: 128},
			"encap":       {what: "how packets travel between hosts", required: true, words: []string{"vlan", "vxlan"}},
			"gateway":     {what: "IPv4 address"},
			"ipv6Gateway": {what: "IPv6 address"},
			"ipv6Subnet":  {what: "ADDRESS/LENGTH, length 1-127"},
			"networkName": named("the network's name", 64),
			"nwType":      {what: "what the network is for", words: []string{"infra", "data"}, preset: "data"},
			"pktTag":      {what: "VLAN or VNI; 0 = the lowest free", high: 16777216},
			"subnet":      {what: "ADDRESS/LENGTH or FIRST-LAST/LENGTH, IPv4, length 8-31", required: true},
			"tenantName":  tenant,
		}
	case "endpointGroup":
		return map[string]constraint{
			"cfgdTag":          {what: "name towards container runtimes", most: 128},
			"extContractsGrps": {what: "names of external contracts groups"},
			"groupName":        named("the group's name", 64),
			"ipPool":           {what: "FIRST-LAST or one IPv4 address"},
			"netProfile":       {what: "name of a net profile", most: 64},
			"networkName":      named("the network of the group", 64),
			"policies":         {what: "names of policies"},
			"tenantName":       tenant,
		}
	case "policy":
		return map[string]constraint{"policyName": named("the policy's name", 64), "tenantName": tenant}
	case "rule":
		return map[string]constraint{
			"action":            {what: "what to do with what matches", required: true, words: []string{"allow", "deny", "reject"}},
			"direction":         {what: "seen from the groups under the policy", required: true, words: []string{"in", "out"}},
			"fromEndpointGroup": {what: "name of the group that sends", most: 64},
			"fromIpAddress":     {what: "ADDRESS or ADDRESS/LENGTH, IPv4"},
			"fromNetwork":       {what: "name of the network that sends", most: 64},
			"policyName":        named("the policy of the rule", 64),
			"port":              {what: "destination port; 0 = any", high: 65535},
			"priority":          {what: "higher wins", low: 1, high: 100, preset: 1},
			"protocol":          {what: "tcp, udp, icmp or a number of 0-255; empty = any"},
			"ruleId":            named("the rule's name within its policy", 64),
			"tenantName":        tenant,
			"toEndpointGroup":   {what: "name of the group that receives", most: 64},
			"toIpAddress":       {what: "ADDRESS or ADDRESS/LENGTH, IPv4"},
			"toNetwork":         {what: "name of the network that receives", most: 64},
		}
	case "netprofile":
		return map[string]constraint{
			"DSCP":        {what: "traffic class; 0 leaves packets as they are", high: 63},
			"bandwidth":   {what: "number and unit, as 10mbps", most: 64},
			"burst":       {what: "kilobytes, at least 2; 0 = unset", high: 10486},
			"profileName": named("the net profile's name", 64),
			"tenantName":  {what: "the tenant it belongs to; must exist"},
		}
	case "appProfile":
		return map[string]constraint{
			"appProfileName": named("the app profile's name", 64),
			"endpointGroups": {what: "names of groups"},
			"tenantName":     tenant,
		}
	case "Bgp":
		return map[string]constraint{
			"as":           {what: "the speaker's own autonomous system", most: 64},
			"hostname":     named("host label of the agent", 256),
			"neighbor":     {what: "IPv4 address", most: 15},
			"neighbor-as":  {what: "the neighbor's autonomous system", most: 64},
			"routerip":     {what: "ADDRESS[-OCTET]/LENGTH, IPv4, length 1-31", required: true},
			"routerip6":    {what: "ADDRESS/LENGTH, IPv6, length 1-127; without it no IPv6 is announced"},
			"neighbors":    {what: "further neighbors, each ADDRESS or ADDRESS@AS, IPv4 or IPv6"},
			"password":     {what: "signs the segments of all sessions", most: 80},
			"ttl-security": {what: "sends and takes segments of the sessions with a TTL of 255 only (RFC 5082); the neighbors must do the same", words: []string{"", "yes", "no"}},
		}
	case "serviceLB":
		return map[string]constraint{
			"ipAddress":   {what: "the IPv4 address wanted; empty = any of the network", most: 15},
			"networkName": named("the network of the service's address", 64),
			"ports":       {what: "SERVICEPORT:PROVIDERPORT:PROTOCOL, ports 1-65535, TCP or UDP; at least one", required: true},
			"selectors":   {what: "KEY=VALUE, labels that providers have; at least one", required: true},
			"serviceName": named("the service's name", 256),
			"tenantName":  tenant,
		}
	case "extContractsGroup":
		return map[string]constraint{
			"contracts":          {what: "distinguished names of contracts"},
			"contractsGroupName": named("the contracts group's name", 64),
			"contractsType":      {what: "what groups do with the contracts", required: true, words: []string{"provided", "consumed"}},
			"tenantName":         tenant,
		}
	case "global":
		return map[string]constraint{
			"arpMode":          {what: "how ARP requests are answered; empty in an update = unchanged", words: []string{"", "proxy", "flood"}},
			"fwdMode":          {what: "how traffic is forwarded; empty in an update = unchanged", words: []string{"", "bridge", "routing"}},
			"name":             {what: "the object's name", required: true, words: []string{"global"}},
			"networkInfraType": {what: "the fabric; aci-opflex is the same as default; empty in an update = unchanged", words: []string{"", "aci", "aci-opflex", "default"}},
			"pvtSubnet":        {what: "ADDRESS/16 for use inside hosts", required: true},
			"vlans":            {what: "LOW-HIGH, within 1-4095", required: true},
			"vxlans":           {what: "LOW-HIGH, within 1-65535, at most 16001 of them", required: true},
		}
	case "aciGw":
		return map[string]constraint{
			"enforcePolicies":     {what: "whether the fabric enforces policies", required: true, words: []string{"yes", "no"}},
			"includeCommonTenant": {what: "whether tenant common is used, too", required: true, words: []string{"yes", "no"}},
			"name":                {what: "the object's name", required: true, words: []string{"aciGw"}},
			"nodeBindings":        {what: "topology/pod-N/node-N, separated by commas", most: 2048},
			"pathBindings":        {what: "topology/pod-N/paths-N/pathep-[ethM/M], separated by commas", most: 2048},
			"physicalDomain":      named("the physical domain", 128),
		}
	default:
		return nil
	}
}
