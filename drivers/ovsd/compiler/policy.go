package compiler

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// countRule adds a rule to its tenant's rules (by is 1), or removes it (-1).
func (c *Compiler) countRule(r drivers.Rule, by int) {
	if r.Audit {
		count(c.audits, r.Tenant, by)
		return
	}
	set := c.rules[r.Tenant]
	if set == nil {
		set = &ofnet.RuleSet{}
		c.rules[r.Tenant] = set
	}
	if by > 0 {
		set.Add(r.Rule)
	} else {
		set.Remove(r.Rule)
	}
	if set.Empty() {
		delete(c.rules, r.Tenant)
	}
}

func (c *Compiler) compileRule(id string) Programs {
	r, ok := c.Rules[id]
	if !ok || r.Audit || !c.tenantsHere[r.Tenant] {
		return Programs{}
	}
	return c.everywhere(func(_ ofnet.Encap, p *ofnet.Pipeline) ofnet.Program { return p.Program(r.Rule) })
}

// compileTenant makes a tenant's connections subject to its rules and its endpoints'
// policies, if there are any. Until the initial sync the installed flows stay: connections
// would be evaluated against part of the rules.
func (c *Compiler) compileTenant(tenant string) Programs {
	rules := c.rules[tenant]
	policed := rules != nil || len(c.subjects.tenants[tenant]) > 0
	if !c.Synced || !c.tenantsHere[tenant] || !policed && !c.logs(tenant) {
		return Programs{}
	}
	return c.everywhere(func(_ ofnet.Encap, p *ofnet.Pipeline) ofnet.Program {
		return p.Program(ofnet.VRFPolicy{
			VRF: c.vrf(tenant), Generation: rules.GenerationWith(c.policySum(tenant)), EndpointPoliciesOnly: policed && rules == nil, LogOnly: rules == nil && c.logs(tenant),
		})
	})
}

// logs reports whether the connections of a tenant are tracked for the log.
func (c *Compiler) logs(tenant string) bool {
	return c.cfg.FlowLog == ofnet.LogAll && c.seen[tenant] || c.cfg.FlowLog != ofnet.LogOff && c.audits[tenant] > 0
}

// policySum returns a hash of the policies of a tenant's endpoints and what they refer to.
func (c *Compiler) policySum(tenant string) (sum uint64) {
	seen := map[string]bool{"": true}
	for id := range c.subjects.tenants[tenant] {
		g := c.EndpointPolicies[id]
		if g.In == "" && g.Out == "" {
			continue
		}
		sum += ofnet.Fingerprint(id + " " + g.In + " " + g.Out)
		for _, set := range []string{g.In, g.Out} {
			if seen[set] {
				continue
			}
			seen[set] = true
			sum += c.fingerprint(set)
		}
	}
	if len(seen) > 1 {
		sum += c.peerSums[tenant]
	}
	return sum
}

// countPolicyPeer adds a peer to what is summed up of its tenant's (by is 1), or removes it (-1).
func (c *Compiler) countPolicyPeer(p drivers.PolicyPeer, by int) {
	sum := ofnet.Fingerprint(p.Addr.String() + " " + strconv.FormatUint(uint64(p.Class), 10))
	if c.peerSums[p.Tenant] += sum * uint64(by); c.peerSums[p.Tenant] == 0 {
		delete(c.peerSums, p.Tenant)
	}
}

// compilePolicyPeer tells the class of a peer in the bridges with endpoints subject to policies.
func (c *Compiler) compilePolicyPeer(id string) Programs {
	peer, declared := c.PolicyPeers[id]
	bridges := c.subjectBridges[peer.Tenant]
	if !declared || bridges == 0 {
		return Programs{}
	}
	return c.everywhere(func(e ofnet.Encap, p *ofnet.Pipeline) ofnet.Program {
		if !bridges.has(e) {
			return ofnet.Program{}
		}
		return p.Program(ofnet.PolicyPeer{ID: id, VRF: c.vrf(peer.Tenant), Addr: peer.Addr, Class: peer.Class})
	})
}

// fingerprint is a hash of what a rule set allows, 0 for one that is not declared.
func (c *Compiler) fingerprint(set string) uint64 {
	s, declared := c.RuleSets[set]
	if !declared {
		return 0
	}
	n, known := c.fingerprints[set]
	if !known {
		n = ofnet.PolicyRuleSet{Out: s.Out, Allows: s.Allows}.Fingerprint()
		c.fingerprints[set] = n
	}
	return n
}

// compileRuleSet installs a rule set in the bridges with endpoints subject to it.
func (c *Compiler) compileRuleSet(id string) Programs {
	set, declared := c.RuleSets[id]
	bridges := c.setBridges[id]
	if !declared && bridges == 0 {
		c.setNumbers.free(id)
	}
	if !declared {
		return Programs{}
	}
	return c.everywhere(func(e ofnet.Encap, p *ofnet.Pipeline) ofnet.Program {
		if !bridges.has(e) {
			return ofnet.Program{}
		}
		return p.Program(ofnet.PolicyRuleSet{ID: id, Number: c.setNumber(id), Out: set.Out, Allows: set.Allows})
	})
}

// setNumber is derived from a set's name, unless that number is taken.
func (c *Compiler) setNumber(set string) uint32 {
	if set == "" {
		return 0
	}
	return c.setNumbers.of(set, uint32(ofnet.Fingerprint(set)), ofnet.LowestPolicyRuleSet, ^uint32(0))
}

// compilePolicy makes an endpoint subject to its policy, once it is here.
func (c *Compiler) compilePolicy(id string) Programs {
	if !c.isSubject(id) {
		return Programs{}
	}
	e, g := c.Endpoints[id], c.EndpointPolicies[id]
	return c.in(e.Network.Encap, func(p *ofnet.Pipeline) ofnet.Program {
		return p.Program(ofnet.EndpointPolicy{Endpoint: c.endpoint(e), In: c.setNumber(g.In), Out: c.setNumber(g.Out)})
	})
}

// isSubject reports whether an endpoint is subject to a policy here.
func (c *Compiler) isSubject(id string) bool {
	_, declared := c.EndpointPolicies[id]
	return declared && c.cfg.EndpointPolicies && c.here(id)
}

// compileOwnNode allows traffic between endpoints with policies and this host.
func (c *Compiler) compileOwnNode(string) Programs {
	if !c.cfg.EndpointPolicies {
		return Programs{}
	}
	return c.everywhere(func(encap ofnet.Encap, p *ofnet.Pipeline) ofnet.Program {
		var own []ofnet.Endpoint
		for _, id := range c.infraIDs() {
			if e := c.Endpoints[id]; e.Network.Encap == encap && c.here(id) {
				own = append(own, c.endpoint(e))
			}
		}
		return p.Program(ofnet.OwnNode{Endpoints: own, Addrs: c.nodeAddrs()})
	})
}

// nodeAddrs are the addresses of this host.
func (c *Compiler) nodeAddrs() []netip.Addr {
	access := c.HostAccess()
	return slices.DeleteFunc([]netip.Addr{c.cfg.VTEP, c.cfg.CtrlIP, access.Addr4, access.Addr6}, func(a netip.Addr) bool {
		return !a.IsValid() || a.IsLoopback()
	})
}

// subjects are the endpoints of this host that are subject to a policy.
type subjects struct {
	tenants map[string]map[string]struct{} // endpoint ids by tenant
	of      map[string]string              // tenant by endpoint id
}

func newSubjects() subjects {
	return subjects{tenants: map[string]map[string]struct{}{}, of: map[string]string{}}
}

// put assigns an endpoint to a tenant, or to none, and returns the tenants that have lost
// or gained it.
func (s *subjects) put(id, tenant string) (changed []string) {
	old := s.of[id]
	if old == tenant {
		return nil
	}
	if old != "" {
		if delete(s.tenants[old], id); len(s.tenants[old]) == 0 {
			delete(s.tenants, old)
		}
		delete(s.of, id)
		changed = append(changed, old)
	}
	if tenant != "" {
		if s.tenants[tenant] == nil {
			s.tenants[tenant] = map[string]struct{}{}
		}
		s.tenants[tenant][id], s.of[id] = struct{}{}, tenant
		changed = append(changed, tenant)
	}
	return changed
}
