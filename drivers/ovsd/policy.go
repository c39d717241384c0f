package ovsd

import (
	"context"
	"errors"
	"strings"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// setRule declares a rule.
func (d *Driver) setRule(r drivers.Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, had := d.rules[r.ID]
	if had && old == r {
		return
	}
	if had {
		d.uncount(old)
	}
	d.rules[r.ID] = r
	set := d.ruleSets[r.Tenant]
	if set == nil {
		set = &ofnet.RuleSet{}
		d.ruleSets[r.Tenant] = set
		d.refreshTenant(r.Tenant)
	}
	set.Add(r.Rule)
	d.refreshRule(r.ID)
	d.refreshPolicy(r.Tenant)
	if had && old.Tenant != r.Tenant {
		d.refreshPolicy(old.Tenant)
	}
}

// removeRule takes a declaration back.
func (d *Driver) removeRule(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.rules[id]
	if !ok {
		return
	}
	delete(d.rules, id)
	d.uncount(r)
	for _, s := range d.sides {
		s.sw.Remove("rule/" + id)
	}
	d.refreshPolicy(r.Tenant)
}

// uncount takes a rule out of its tenant's. The caller holds mu.
func (d *Driver) uncount(r drivers.Rule) {
	set := d.ruleSets[r.Tenant]
	if set.Remove(r.Rule); set.Empty() {
		delete(d.ruleSets, r.Tenant)
		d.refreshTenant(r.Tenant)
	}
}

func (d *Driver) refreshRule(id string) {
	if !d.started {
		return
	}
	for _, s := range d.sides {
		if s.pipeline != nil {
			s.sw.Set("rule/"+id, s.pipeline.Program(d.rules[id].Rule))
		}
	}
}

// refreshPolicy holds a tenant's connections to its rules, or to none when there are
// none. Before everything has been declared a part of the rules would be judged by, so
// what the predecessor has set up stays. The caller holds mu.
func (d *Driver) refreshPolicy(tenant string) {
	if !d.started || !d.complete {
		return
	}
	set := d.ruleSets[tenant]
	for _, s := range d.sides {
		if s.pipeline == nil || !d.policed(tenant) {
			s.sw.Remove("vrf/" + tenant)
			continue
		}
		s.sw.Set("vrf/"+tenant, s.pipeline.Program(ofnet.VRFPolicy{
			VRF: d.vrf(tenant), Generation: set.GenerationWith(d.endpointPolicySum(tenant)), EndpointPoliciesOnly: set == nil,
		}))
	}
}

func (d *Driver) refreshPolicies() {
	for tenant := range d.ruleSets {
		d.refreshPolicy(tenant)
	}
	for tenant := range d.guards.tenants {
		d.refreshPolicy(tenant)
	}
}

// policed reports whether connections of a tenant are subject to rules or guards. The
// caller holds mu.
func (d *Driver) policed(tenant string) bool {
	return d.ruleSets[tenant] != nil || len(d.guards.tenants[tenant]) > 0
}

// refreshTenant renews the flows of a tenant's endpoints, which depend on whether there
// are rules. The caller holds mu.
func (d *Driver) refreshTenant(tenant string) {
	for id, e := range d.endpoints {
		if e.Network.Tenant == tenant {
			d.refreshEndpoint(id)
		}
	}
}

// RuleHits reads the switches' counters.
func (d *Driver) RuleHits(ctx context.Context) (map[string]drivers.Hits, error) {
	out := map[string]drivers.Hits{}
	var failed error
	for _, s := range d.sides {
		hits, err := s.sw.RuleHits(ctx)
		failed = errors.Join(failed, err)
		for owner, c := range hits {
			if id, ok := strings.CutPrefix(owner, "rule/"); ok {
				sum := out[id]
				out[id] = drivers.Hits{Packets: sum.Packets + c.Packets, Bytes: sum.Bytes + c.Bytes}
			}
		}
	}
	return out, failed
}
