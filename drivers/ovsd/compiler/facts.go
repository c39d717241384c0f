package compiler

import (
	"net/netip"
	"strconv"

	"github.com/contiv/netplugin/ofnet"
)

// facts compute intermediate results and return the keys whose result has changed. If none
// has, nothing further is computed.
var facts = [numKinds]func(c *Compiler, key string) []string{
	Pipeline:       (*Compiler).newPipeline,
	TenantHere:     func(c *Compiler, t string) []string { return c.move(flip(c.tenantsHere, t, c.needs(t))) },
	TenantSeen:     func(c *Compiler, t string) []string { return flip(c.seen, t, c.tenants[t] > 0) },
	TenantRules:    func(c *Compiler, t string) []string { return c.move(flip(c.ruled, t, c.rules[t] != nil)) },
	MovedTenants:   (*Compiler).takeMoved,
	Peer:           func(c *Compiler, a string) []string { return flip(c.peered, a, c.peers[a] > 0) },
	AddressOwner:   (*Compiler).claimAddresses,
	Location:       (*Compiler).locate,
	GroupTag:       (*Compiler).tagGroup,
	PolicySubject:  (*Compiler).subject,
	RuleSetBridges: (*Compiler).bridgesOfRuleSet,
	SubjectBridges: (*Compiler).bridgesOfSubjects,
}

// flip records whether something holds, and returns its key if that has changed.
func flip(m map[string]bool, key string, now bool) []string {
	if m[key] == now {
		return nil
	}
	if m[key] = now; !now {
		delete(m, key)
	}
	return []string{key}
}

// move notes tenants of which a fact has changed.
func (c *Compiler) move(tenants []string) []string {
	for _, t := range tenants {
		c.moved[t] = true
	}
	return tenants
}

// takeMoved has what follows from moved tenants marked, for all of them together.
func (c *Compiler) takeMoved(key string) []string {
	c.moving, c.moved = c.moved, map[string]bool{}
	if len(c.moving) == 0 {
		return nil
	}
	return []string{key}
}

// encapOf is the encapsulation of a bridge by its key.
func encapOf(key string) ofnet.Encap {
	if key == ofnet.VLAN.String() {
		return ofnet.VLAN
	}
	return ofnet.VXLAN
}

// newPipeline selects the pipeline of a bridge.
func (c *Compiler) newPipeline(key string) []string {
	e := encapOf(key)
	bridge, ok := c.Bridges[key]
	if !ok || c.Global.FwdMode == "" {
		return nil
	}
	now := ofnet.Settings{
		Encap: e, Routing: c.Global.FwdMode == "routing", ARPFlood: c.Global.ARPMode == "flood",
		AllowSpoofing: c.cfg.AllowSpoofing, Kernel: bridge.Kernel, TunnelPort: c.cfg.TunnelPort, HostMAC: ofnet.HostMAC(c.cfg.VTEP), Round: bridge.Round,
		EndpointPolicies: c.cfg.EndpointPolicies, DNS: c.cfg.DNS, ConnectionRate: c.cfg.ConnectionRate, FlowLog: c.cfg.FlowLog, Host: c.withNodeSNAT(c.HostAccess()),
	}
	if c.settings[e] == now {
		return nil
	}
	c.settings[e] = now
	p, err := ofnet.NewPipeline(now)
	if c.modeErrs[e] = err; err != nil {
		delete(c.pipelines, e)
	} else {
		c.pipelines[e] = p
	}
	return []string{key}
}

// needs reports whether this host needs the flows of a tenant: it has an endpoint of it, or
// reaches those of other hosts itself. Those of a tenant with a network on the uplinks stay, as
// its frames arrive whoever they are for.
func (c *Compiler) needs(tenant string) bool {
	return c.members[tenant].local > 0 || c.vlans[tenant] > 0 || c.Cluster != nil && (c.tenants[tenant] > 0 || c.members[tenant].all > 0)
}

// NeedsTenant reports whether this host needed the flows of a tenant in the last pass.
func (c *Compiler) NeedsTenant(tenant string) bool { return c.tenantsHere[tenant] }

// here reports whether an endpoint is on this host and has a port.
func (c *Compiler) here(id string) bool { return c.Endpoints[id].Local && c.Ports[id].OpenFlow != 0 }

// claimAddresses records the addresses of an endpoint, and returns the endpoints that own
// other addresses than before because of it.
func (c *Compiler) claimAddresses(id string) []string {
	var now claimant
	if e := c.Endpoints[id]; c.here(id) && !e.Network.Infra {
		now = claimant{tenant: e.Network.Tenant, addrs: [2]netip.Addr{e.IPv4, e.IPv6}}
	}
	return c.owners.put(id, now)
}

// locate records where an endpoint is, and returns the networks whose flood group changes.
func (c *Compiler) locate(id string) []string {
	e, known := c.Endpoints[id]
	if !known || !c.reachable(id) || !c.tenantsHere[e.Network.Tenant] {
		return c.locations.put(id, location{})
	}
	return c.locations.put(id, location{network: e.Network.ID, port: c.Ports[id].OpenFlow, vtep: e.VTEP})
}

// reachable reports whether the switch knows where to send an endpoint's packets.
func (c *Compiler) reachable(id string) bool {
	e, port := c.Endpoints[id], c.Ports[id].OpenFlow
	return e.Local == (port != 0) && (e.Local || e.Network.Encap != ofnet.VXLAN || e.VTEP.IsValid())
}

// tagGroup records the VLAN of an endpoint's group, and returns the VLANs that got their
// first member or lost their last one.
func (c *Compiler) tagGroup(id string) (changed []string) {
	var tag uint16
	if e := c.Endpoints[id]; c.here(id) && e.Network.Encap == ofnet.VLAN {
		tag = e.Tag
	}
	for _, t := range c.groupTags.put(id, tag) {
		changed = append(changed, strconv.Itoa(int(t)))
	}
	return changed
}

// subject records the tenant under which an endpoint is subject to a policy here, and
// returns the tenants that have lost or gained one.
func (c *Compiler) subject(id string) []string {
	tenant := ""
	if c.isSubject(id) {
		tenant = c.Endpoints[id].Network.Tenant
	}
	return c.subjects.put(id, tenant)
}

// encaps is a set of encapsulations. It may contain that of unknown endpoints.
type encaps uint8

func (s encaps) has(e ofnet.Encap) bool { return s&(1<<e) != 0 }

// bridgesOfRuleSet records in which bridges endpoints are subject to a rule set.
func (c *Compiler) bridgesOfRuleSet(set string) []string {
	var now encaps
	for id := range c.usersOf(set) {
		now |= 1 << c.Endpoints[id].Network.Encap
	}
	if c.setBridges[set] == now {
		return nil
	}
	if c.setBridges[set] = now; now == 0 {
		delete(c.setBridges, set)
	}
	return []string{set}
}

// bridgesOfSubjects records in which bridges a tenant's endpoints are subject to a policy.
func (c *Compiler) bridgesOfSubjects(tenant string) []string {
	var now encaps
	for id := range c.subjects.tenants[tenant] {
		now |= 1 << c.Endpoints[id].Network.Encap
	}
	if c.subjectBridges[tenant] == now {
		return nil
	}
	if c.subjectBridges[tenant] = now; now == 0 {
		delete(c.subjectBridges, tenant)
	}
	return []string{tenant}
}
