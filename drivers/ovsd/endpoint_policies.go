package ovsd

import (
	"context"
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// guards are those declared, with the sets they refer to. The driver's lock guards it.
type guards struct {
	declared map[string]drivers.EndpointPolicy // by endpoint id
	sets     map[string]policyRuleSet
	tenants  map[string]map[string]struct{} // endpoint ids by tenant, of guarded endpoints that exist
	of       map[string]string              // tenant by endpoint id, the other way round
	numbers  map[string]uint32              // of sets, declared or referred to
	taken    map[uint32]struct{}
}

// policyRuleSet is a declared set with a number for what it says.
type policyRuleSet struct {
	drivers.PolicyRuleSet
	fingerprint uint64
}

func newEndpointPolicies() guards {
	return guards{
		declared: map[string]drivers.EndpointPolicy{}, sets: map[string]policyRuleSet{}, tenants: map[string]map[string]struct{}{}, of: map[string]string{},
		numbers: map[string]uint32{}, taken: map[uint32]struct{}{},
	}
}

// number returns a set's number, which follows from its name unless another one has it.
func (g *guards) number(set string) uint32 {
	if set == "" {
		return 0
	}
	if n, ok := g.numbers[set]; ok {
		return n
	}
	n := uint32(ofnet.Fingerprint(set))
	for _, used := g.taken[n]; used || n < ofnet.LowestPolicyRuleSet; _, used = g.taken[n] {
		n++
	}
	g.numbers[set], g.taken[n] = n, struct{}{}
	return n
}

// users lists the endpoints that a set holds for.
func (g *guards) users(set string) (ids []string) {
	for id, d := range g.declared {
		if d.In == set || d.Out == set {
			ids = append(ids, id)
		}
	}
	return ids
}

// place puts an endpoint under its tenant, or under none, and reports the tenants for
// which it is the first or was the last one.
func (g *guards) place(id, tenant string) (turned []string) {
	old := g.of[id]
	if old == tenant {
		return nil
	}
	if old != "" {
		if delete(g.tenants[old], id); len(g.tenants[old]) == 0 {
			delete(g.tenants, old)
			turned = append(turned, old)
		}
	}
	delete(g.of, id)
	if tenant == "" {
		return turned
	}
	if g.tenants[tenant] == nil {
		g.tenants[tenant] = map[string]struct{}{}
		turned = append(turned, tenant)
	}
	g.tenants[tenant][id], g.of[id] = struct{}{}, tenant
	return turned
}

// setPolicyRuleSet declares a set.
func (d *Driver) setPolicyRuleSet(s drivers.PolicyRuleSet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.guards.sets[s.ID]; ok && old.Equal(s) {
		return
	}
	d.guards.sets[s.ID] = policyRuleSet{s, ofnet.PolicyRuleSet{Out: s.Out, Allows: s.Allows}.Fingerprint()}
	d.setChanged(s.ID)
}

// removePolicyRuleSet takes a declaration back: what refers to the set is allowed nothing.
func (d *Driver) removePolicyRuleSet(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.guards.sets[id]; ok {
		delete(d.guards.sets, id)
		d.setChanged(id)
	}
}

// setEndpointPolicy declares a guard.
func (d *Driver) setEndpointPolicy(g drivers.EndpointPolicy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.guards.declared[g.EndpointID]; ok {
		if old == g {
			return
		}
		defer d.forgetSets(old)
	}
	d.guards.declared[g.EndpointID] = g
	d.refreshSet(g.In)
	d.refreshSet(g.Out)
	d.endpointPolicyChanged(g.EndpointID)
}

// removeEndpointPolicy takes a declaration back.
func (d *Driver) removeEndpointPolicy(endpointID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.guards.declared[endpointID]
	if !ok {
		return
	}
	delete(d.guards.declared, endpointID)
	d.endpointPolicyChanged(endpointID)
	d.forgetSets(old)
}

// endpointPolicyChanged renews what follows from the guard of an endpoint. The caller holds mu.
func (d *Driver) endpointPolicyChanged(endpointID string) {
	before := d.guards.of[endpointID]
	d.refreshEndpointPolicy(endpointID)
	for _, tenant := range []string{before, d.guards.of[endpointID]} {
		if tenant != "" {
			d.refreshPolicy(tenant)
		}
	}
}

// setChanged renews what follows from a set. The caller holds mu.
func (d *Driver) setChanged(id string) {
	d.refreshSet(id)
	tenants := map[string]bool{}
	for _, user := range d.guards.users(id) {
		if tenant := d.guards.of[user]; tenant != "" && !tenants[tenant] {
			tenants[tenant] = true
			d.refreshPolicy(tenant)
		}
	}
	d.forgetSet(id)
}

// forgetSets frees what only a former guard needed.
func (d *Driver) forgetSets(old drivers.EndpointPolicy) {
	for _, set := range []string{old.In, old.Out} {
		if set != "" {
			d.refreshSet(set)
			d.forgetSet(set)
		}
	}
}

// forgetSet frees the number of a set that is neither declared nor referred to.
func (d *Driver) forgetSet(id string) {
	if _, declared := d.guards.sets[id]; !declared && len(d.guards.users(id)) == 0 {
		delete(d.guards.taken, d.guards.numbers[id])
		delete(d.guards.numbers, id)
	}
}

// refreshSet puts a set into the switches whose endpoints it holds for. The caller
// holds mu.
func (d *Driver) refreshSet(id string) {
	if id == "" || !d.started {
		return
	}
	set, declared := d.guards.sets[id]
	needed := map[ofnet.Encap]bool{}
	for _, user := range d.guards.users(id) {
		needed[d.endpoints[user].Network.Encap] = true
	}
	for encap, s := range d.sides {
		if !declared || !needed[encap] || s.pipeline == nil {
			s.sw.Remove("allow/" + id)
			continue
		}
		s.sw.Set("allow/"+id, s.pipeline.Program(ofnet.PolicyRuleSet{ID: id, Number: d.guards.number(id), Out: set.Out, Allows: set.Allows}))
	}
}

// refreshSetsOf does so for what an endpoint's policy refers to. The caller holds mu.
func (d *Driver) refreshSetsOf(endpoint string) {
	g := d.guards.declared[endpoint]
	d.refreshSet(g.In)
	d.refreshSet(g.Out)
}

// refreshEndpointPolicy holds an endpoint to its guard, once it is here, and its host's own
// endpoints to none. The caller holds mu.
func (d *Driver) refreshEndpointPolicy(id string) {
	if !d.started || !d.cfg.EndpointPolicies {
		return
	}
	e, known := d.endpoints[id]
	if e.Network.Infra {
		d.refreshOwnNode()
	}
	g, declared := d.guards.declared[id]
	s := d.sides[e.Network.Encap]
	here := known && declared && e.Local && d.ports[id] != 0 && s != nil && s.pipeline != nil
	if !here && d.guards.of[id] == "" {
		return
	}
	tenant := ""
	if here {
		tenant = e.Network.Tenant
	}
	moved := d.guards.of[id] != tenant
	turned := d.guards.place(id, tenant)
	if here {
		s.sw.Set("guard/"+id, s.pipeline.Program(ofnet.EndpointPolicy{Endpoint: d.asEndpoint(e), In: d.guards.number(g.In), Out: d.guards.number(g.Out)}))
	} else {
		for _, s := range d.sides {
			s.sw.Remove("guard/" + id)
		}
	}
	if moved && here {
		d.refreshSet(g.In)
		d.refreshSet(g.Out)
		d.refreshPolicy(tenant)
	}
	for _, t := range turned {
		d.refreshPolicy(t)
	}
}

func (d *Driver) refreshEndpointPolicies() {
	for id := range d.guards.sets {
		d.refreshSet(id)
	}
	for id := range d.guards.declared {
		d.refreshEndpointPolicy(id)
	}
	if d.cfg.EndpointPolicies {
		d.refreshOwnNode()
	}
}

// refreshOwnNode lets guarded endpoints and this host talk. The caller holds mu.
func (d *Driver) refreshOwnNode() {
	for encap, s := range d.sides {
		if s.pipeline == nil {
			continue
		}
		var own []ofnet.Endpoint
		for id, e := range d.endpoints {
			if e.Network.Infra && e.Local && e.Network.Encap == encap && d.ports[id] != 0 {
				own = append(own, d.asEndpoint(e))
			}
		}
		s.sw.Set("own-node", s.pipeline.Program(ofnet.OwnNode{Endpoints: own, Addrs: d.nodeAddrs()}))
	}
}

// nodeAddrs are the addresses of this host.
func (d *Driver) nodeAddrs() (addrs []netip.Addr) {
	access := d.hostAccess()
	for _, a := range []netip.Addr{d.cfg.VTEP, d.cfg.CtrlIP, access.Addr4, access.Addr6} {
		if a.IsValid() && !a.IsLoopback() {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// endpointPolicySum sums up the guards of a tenant's endpoints and what they refer to. The
// caller holds mu.
func (d *Driver) endpointPolicySum(tenant string) (sum uint64) {
	seen := map[string]bool{"": true}
	for id := range d.guards.tenants[tenant] {
		g := d.guards.declared[id]
		if g.In == "" && g.Out == "" {
			continue
		}
		sum += ofnet.Fingerprint(id + " " + g.In + " " + g.Out)
		for _, set := range []string{g.In, g.Out} {
			if !seen[set] {
				seen[set] = true
				sum += d.guards.sets[set].fingerprint
			}
		}
	}
	return sum
}

// endpointPolicyOwners lists what must be in the switch for an endpoint of this host; not ok as
// long as connections are not held to guards yet.
func (d *Driver) endpointPolicyOwners(id string) (owners []string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	owners = []string{"ep/" + id}
	g, guarded := d.guards.declared[id]
	if !guarded || !d.cfg.EndpointPolicies {
		return owners, true
	}
	for _, set := range []string{g.In, g.Out} {
		if set != "" {
			owners = append(owners, "allow/"+set)
		}
	}
	return append(owners, "guard/"+id, "vrf/"+d.endpoints[id].Network.Tenant), d.complete
}

// settled waits for the flows of several owners.
func settled(ctx context.Context, sw *ofnet.Switch, owners []string) error {
	for _, owner := range owners {
		if err := sw.Settled(ctx, owner); err != nil {
			return err
		}
	}
	return nil
}
