package compiler

import (
	"strconv"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// same: rows with the same key.
func same(_ *Compiler, key string, mark func(string)) { mark(key) }

// one: the single row of a kind.
func one(_ *Compiler, _ string, mark func(string)) { mark("") }

// allOf: all rows of a kind.
func allOf(k Kind) relation {
	return func(c *Compiler, _ string, mark func(string)) { c.keys(k, mark) }
}

// keys yields all keys for which a kind may have rows. For kinds that depend on a fact
// these are the keys of the fact, not of its inputs: new keys are marked by the fact.
func (c *Compiler) keys(k Kind, yield func(string)) {
	switch k {
	case Pipeline:
		each(c.Bridges, yield)
	case TenantHere:
		each(c.tenants, yield)
		each(c.members, yield)
	case PeerFlows:
		each(c.peered, yield)
	case NetworkFlows, FloodFlows:
		each(c.Networks, yield)
	case GroupVLANFlows:
		for tag := range c.groupTags.members {
			yield(strconv.Itoa(int(tag)))
		}
	case RuleFlows:
		each(c.Rules, yield)
	case RuleSetFlows:
		each(c.RuleSets, yield)
	case PolicyPeerFlows:
		each(c.PolicyPeers, yield)
	case ServiceFlows:
		each(c.Services, yield)
	case EndpointFlows:
		each(c.Endpoints, yield)
	case PolicyFlows:
		each(c.EndpointPolicies, yield)
	case TenantFlows:
		each(c.rules, yield)
		each(c.audits, yield)
		each(c.subjects.tenants, yield)
		if c.cfg.FlowLog == ofnet.LogAll {
			each(c.seen, yield)
		}
	case UplinkFlows:
		each(c.Uplinks, yield)
	}
}

func each[V any](rows map[string]V, yield func(string)) {
	for key := range rows {
		yield(key)
	}
}

func localEndpoints(c *Compiler, _ string, mark func(string)) {
	for id := range c.Ports {
		mark(id)
	}
}

// tenantOfEndpoint: for which an endpoint counts.
func tenantOfEndpoint(c *Compiler, key string, mark func(string)) {
	if e, ok := c.Endpoints[key]; ok {
		mark(e.Network.Tenant)
	}
}

// networksOfMoved and those below are what tenants have that have moved. All that have are looked
// for at once: at a start there are as many as tenants.
func networksOfMoved(c *Compiler, _ string, mark func(string)) {
	for id, n := range c.Networks {
		if c.moving[n.Tenant] {
			mark(id)
		}
	}
}

func rulesOfMoved(c *Compiler, _ string, mark func(string)) {
	for id, r := range c.Rules {
		if c.moving[r.Tenant] {
			mark(id)
		}
	}
}

// servicesOfMoved: those that containers of such tenants can reach.
func servicesOfMoved(c *Compiler, _ string, mark func(string)) {
	for id, s := range c.Services {
		if s.Tenant == "" || c.moving[s.Tenant] {
			mark(id)
		}
	}
}

func endpointsOfMoved(c *Compiler, _ string, mark func(string)) {
	for id, e := range c.Endpoints {
		if c.moving[e.Network.Tenant] {
			mark(id)
		}
	}
}

func tenantOfNetwork(c *Compiler, key string, mark func(string)) {
	if n, ok := c.Networks[key]; ok {
		mark(n.Tenant)
	}
}

// overlappingNetworks: those that may own the addresses of the network instead of it.
func overlappingNetworks(c *Compiler, key string, mark func(string)) {
	n := c.Networks[key]
	if c.Cluster == nil {
		return
	}
	for id, o := range c.Networks {
		if id != key && overlap(n, o) {
			mark(id)
		}
	}
}

func groupVLAN(c *Compiler, key string, mark func(string)) {
	if e := c.Endpoints[key]; e.Local && e.Tag != 0 && e.Network.Encap == ofnet.VLAN {
		mark(strconv.Itoa(int(e.Tag)))
	}
}

func ruleSetsOfEndpoint(c *Compiler, key string, mark func(string)) {
	p := c.EndpointPolicies[key]
	for _, set := range []string{p.In, p.Out} {
		if set != "" {
			mark(set)
		}
	}
}

func ifInfra(c *Compiler, key string, mark func(string)) {
	if e := c.Endpoints[key]; e.Local && e.Network.Infra {
		mark("")
	}
}

// sameIfLocal: rows with the same key, for endpoints of this host only.
func sameIfLocal(c *Compiler, key string, mark func(string)) {
	if c.Endpoints[key].Local {
		mark(key)
	}
}

// sameIfHere: rows with the same key, for endpoints of tenants whose flows this host needs.
// Those of a tenant that comes to be needed, or ends to, follow from that fact.
func sameIfHere(c *Compiler, key string, mark func(string)) {
	if e, ok := c.Endpoints[key]; ok && c.tenantsHere[e.Network.Tenant] {
		mark(key)
	}
}

func ifLocal(c *Compiler, key string, mark func(string)) {
	if c.Endpoints[key].Local {
		mark("")
	}
}

func ifHostPort(_ *Compiler, key string, mark func(string)) {
	if key == HostEndpointVXLAN || key == HostEndpointVLAN {
		mark("")
	}
}

func tenantOfRule(c *Compiler, key string, mark func(string)) {
	if r, ok := c.Rules[key]; ok {
		mark(r.Tenant)
	}
}

// tenantOfSubject: the tenant that an endpoint belonged to in the last pass.
func tenantOfSubject(c *Compiler, key string, mark func(string)) {
	if tenant := c.subjects.of[key]; tenant != "" {
		mark(tenant)
	}
}

// tenantsOfRuleSet: those of the endpoints that are subject to it.
func tenantsOfRuleSet(c *Compiler, key string, mark func(string)) {
	for id := range c.usersOf(key) {
		tenantOfSubject(c, id, mark)
	}
}

func tenantOfPolicyPeer(c *Compiler, key string, mark func(string)) {
	if p, ok := c.PolicyPeers[key]; ok && len(c.subjects.tenants[p.Tenant]) > 0 {
		mark(p.Tenant)
	}
}

func policyPeersOfTenant(c *Compiler, tenant string, mark func(string)) {
	for key, p := range c.PolicyPeers {
		if p.Tenant == tenant {
			mark(key)
		}
	}
}

func peerOfHost(c *Compiler, key string, mark func(string)) {
	if h, ok := c.Hosts[key]; ok && key != c.cfg.HostLabel {
		mark(h.VTEP.String())
	}
}

// usersOf yields the endpoints whose policies refer to a rule set.
func (c *Compiler) usersOf(set string) func(yield func(string, drivers.EndpointPolicy) bool) {
	return func(yield func(string, drivers.EndpointPolicy) bool) {
		for id, p := range c.EndpointPolicies {
			if (p.In == set || p.Out == set) && !yield(id, p) {
				return
			}
		}
	}
}
