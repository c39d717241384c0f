package compiler

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// These methods replace a row of the inputs and mark what depends on it. Setting the same
// value again changes nothing.

// Apply declares an object. Kinds that no program depends on are ignored.
func (c *Compiler) Apply(o drivers.Object) {
	switch o := o.(type) {
	case drivers.Global:
		setOne(c, Global, &c.Global, o, equal)
	case drivers.ClusterReach:
		setOne(c, Cluster, &c.Cluster, &o, func(a, b *drivers.ClusterReach) bool { return a != nil && slices.Equal(a.Services, b.Services) })
	case drivers.Network:
		set(c, Network, c.Networks, o.ID, o, equal)
	case drivers.Endpoint:
		set(c, Endpoint, c.Endpoints, o.ID, o, equal)
	case drivers.Rule:
		set(c, Rule, c.Rules, o.ID, o, equal)
	case drivers.Service:
		set(c, Service, c.Services, o.ID, o, drivers.Service.Equal)
	case drivers.PolicyRuleSet:
		set(c, RuleSet, c.RuleSets, o.ID, o, drivers.PolicyRuleSet.Equal)
	case drivers.PolicyPeer:
		set(c, PolicyPeer, c.PolicyPeers, o.Key().ID, o, equal)
	case drivers.EndpointPolicy:
		set(c, EndpointPolicy, c.EndpointPolicies, o.EndpointID, o, equal)
	case drivers.Host:
		set(c, Host, c.Hosts, o.Label, o, drivers.Host.Equal)
	}
}

// Delete deletes an object. Objects of which there is only one stay.
func (c *Compiler) Delete(k drivers.Kind, id string) {
	switch k {
	case drivers.KindNetwork:
		remove(c, Network, c.Networks, id)
	case drivers.KindEndpoint:
		remove(c, Endpoint, c.Endpoints, id)
	case drivers.KindRule:
		remove(c, Rule, c.Rules, id)
	case drivers.KindService:
		remove(c, Service, c.Services, id)
	case drivers.KindPolicyRuleSet:
		remove(c, RuleSet, c.RuleSets, id)
	case drivers.KindPolicyPeer:
		remove(c, PolicyPeer, c.PolicyPeers, id)
	case drivers.KindEndpointPolicy:
		remove(c, EndpointPolicy, c.EndpointPolicies, id)
	case drivers.KindHost:
		remove(c, Host, c.Hosts, id)
	}
}

// SetSynced says that the store has completed its initial sync.
func (c *Compiler) SetSynced() { setOne(c, Synced, &c.Synced, true, equal) }

// SetControlPorts replaces the ports of the control plane other than the configured ones.
func (c *Compiler) SetControlPorts(ports []ofnet.PortRange) {
	setOne(c, ControlPorts, &c.ControlPorts, ports, slices.Equal)
}

// SetBridge says that a bridge exists.
func (c *Compiler) SetBridge(e ofnet.Encap, b BridgeState) {
	set(c, Bridge, c.Bridges, e.String(), b, equal)
}

// SetPorts replaces the ports of endpoints.
func (c *Compiler) SetPorts(ports map[string]PortNumber) { replace(c, Port, c.Ports, ports) }

// SetUplinks replaces the uplinks.
func (c *Compiler) SetUplinks(uplinks map[string]ofnet.Uplink) {
	replace(c, Uplink, c.Uplinks, uplinks)
}

// SetTunnel says whether the tunnel port has its OpenFlow number.
func (c *Compiler) SetTunnel(up bool) { setOne(c, Tunnel, &c.Tunnel, up, equal) }

func equal[V comparable](a, b V) bool { return a == b }

func setOne[V any](c *Compiler, k Kind, row *V, v V, equal func(a, b V) bool) {
	if equal(*row, v) {
		return
	}
	*row = v
	c.changed(k, "")
}

func set[V any](c *Compiler, k Kind, rows map[string]V, key string, v V, equal func(a, b V) bool) {
	old, had := rows[key]
	if had && equal(old, v) {
		return
	}
	if had {
		c.changed(k, key)
		c.index(k, old, -1)
	}
	rows[key] = v
	c.index(k, v, 1)
	c.changed(k, key)
}

func remove[V any](c *Compiler, k Kind, rows map[string]V, key string) {
	old, had := rows[key]
	if !had {
		return
	}
	c.changed(k, key)
	c.index(k, old, -1)
	delete(rows, key)
}

func replace[V comparable](c *Compiler, k Kind, rows, now map[string]V) {
	for key := range rows {
		if _, still := now[key]; !still {
			remove(c, k, rows, key)
		}
	}
	for key, v := range now {
		set(c, k, rows, key, v, equal)
	}
}

// index updates the counts of inputs: by is 1 for a row that is added, -1 for one removed.
func (c *Compiler) index(k Kind, row any, by int) {
	switch row := row.(type) {
	case drivers.Network:
		count(c.tenants, row.Tenant, by)
		if row.Encap == ofnet.VLAN {
			count(c.vlans, row.Tenant, by)
		}
	case drivers.Rule:
		c.countRule(row, by)
	case drivers.Endpoint:
		c.countMember(row, by)
		if row.Local && row.Network.Infra {
			count(c.infra, row.ID, by)
		}
	case drivers.PolicyRuleSet:
		delete(c.fingerprints, row.ID)
	case drivers.PolicyPeer:
		c.countPolicyPeer(row, by)
	case drivers.Host:
		if row.Label != c.cfg.HostLabel {
			count(c.peers, row.VTEP.String(), by)
		}
	}
}

// countMember updates how many endpoints a tenant has.
func (c *Compiler) countMember(e drivers.Endpoint, by int) {
	m := c.members[e.Network.Tenant]
	m.all += by
	if e.Local {
		m.local += by
	}
	if c.members[e.Network.Tenant] = m; m.all == 0 {
		delete(c.members, e.Network.Tenant)
	}
}

func count(m map[string]int, key string, by int) {
	if m[key] += by; m[key] == 0 {
		delete(m, key)
	}
}

// HostAddrs are the addresses of all hosts, sorted.
func (c *Compiler) HostAddrs() []netip.Addr {
	var out []netip.Addr
	for _, h := range c.Hosts {
		out = append(out, h.Addresses...)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
