package intent

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/aci"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// FabricProfiles returns what the gateway of an ACI fabric is to know, by app profile
// key; nothing unless the fabric is one.
func (e *Engine) FabricProfiles() map[string]aci.Profile {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	x := m.committed()
	profiles := map[string]aci.Profile{}
	if !inACI(x) {
		return profiles
	}
	for key, app := range x.apps.all() {
		p, err := fabricProfile(x, app)
		if err != nil {
			e.cfg.Log.WithField("appProfile", key).WithError(err).Error("the app profile cannot be fully expressed on an ACI fabric")
		}
		profiles[key] = p
	}
	return profiles
}

// Changed returns a channel that is closed when something has been committed since.
func (e *Engine) Changed() <-chan struct{} {
	e.model.mu.RLock()
	defer e.model.mu.RUnlock()
	return e.model.changed.Next()
}

// checkFabric wants app profiles to be such that an ACI gateway understands them.
func checkFabric(x *tx, apps ...*contivmodel.AppProfile) error {
	if !inACI(x) {
		return nil
	}
	for _, app := range apps {
		if _, err := fabricProfile(x, app); err != nil {
			return err
		}
	}
	return nil
}

// appsWith returns the app profiles of a group.
func appsWith(x *tx, group string) []*contivmodel.AppProfile {
	var apps []*contivmodel.AppProfile
	for _, app := range x.apps.where(x.apps.ofGroup, group) {
		apps = append(apps, app)
	}
	return apps
}

// fabricProfile translates an app profile. A contract stands for the rules of a policy
// that concern the same peer. A group under the policy provides it, or consumes it where
// the rules name whom the group may reach; the group they name does the opposite. What
// the fabric cannot express is left out and named by the error.
func fabricProfile(x *tx, app *contivmodel.AppProfile) (aci.Profile, error) {
	p := aci.Profile{Version: aci.APIVersion, Tenant: app.TenantName, Name: app.AppProfileName}
	if gw, ok := x.gateways.get(contivmodel.AciGwName); ok {
		p.Config = gw
	}
	var fault error // the first thing the fabric cannot express
	contracts := map[string][]aci.Filter{}
	for _, key := range slices.Sorted(slices.Values(contivmodel.Keys(app.TenantName, app.EndpointGroups...))) {
		g, ok := x.groups.get(key)
		if !ok {
			continue
		}
		group, number, err := fabricGroup(x, g)
		if err != nil {
			return p, err
		}
		for _, r := range groupRules(x, g) {
			name, filter, err := contract(r)
			if err != nil {
				fault = cmp.Or(fault, err)
				continue
			}
			if !slices.Contains(contracts[name], filter) {
				contracts[name] = append(contracts[name], filter)
			}
			kind := aci.Provide
			if r.ToEndpointGroup != "" {
				kind = aci.Consume
			}
			group.Links = link(group.Links, kind, name)
		}
		for _, r := range allowing(nil, x.rules.where(x.rules.onGroup, key)) {
			name, _, err := contract(r)
			if err != nil {
				continue // reported where its own group is
			}
			kind := aci.Provide
			if r.FromEndpointGroup == g.GroupName {
				kind = aci.Consume
			}
			group.Links = link(group.Links, kind, name)
		}
		p.Groups, p.Numbers = append(p.Groups, group), append(p.Numbers, number)
	}
	for _, name := range slices.Sorted(maps.Keys(contracts)) {
		p.Contracts = append(p.Contracts, aci.Contract{Name: name, Filters: contracts[name]})
	}
	return p, fault
}

// fabricGroup is a group without the contracts of its rules, and its number.
func fabricGroup(x *tx, g *contivmodel.EndpointGroup) (aci.Group, int, error) {
	rec, ok := x.groups.records.get(groupID(g))
	net, exists := x.networks.records.get(state.NetworkID(g.NetworkName, g.TenantName))
	if !ok || !exists {
		return aci.Group{}, 0, errs.New(errs.Internal, "endpoint group %s or its network has no record", g.Key)
	}
	group := aci.Group{Name: g.GroupName, Network: g.NetworkName, VLAN: strconv.Itoa(rec.PktTag)}
	if net.Gateway != "" {
		group.Gateway = fmt.Sprintf("%s/%d", net.Gateway, net.SubnetLen)
	}
	for _, key := range contivmodel.Keys(g.TenantName, g.ExtContractsGrps...) {
		c, ok := x.contracts.get(key)
		if !ok {
			continue
		}
		kind := aci.Provide
		if c.ContractsType == contivmodel.ContractsConsumed {
			kind = aci.Consume
		}
		for _, dn := range c.Contracts {
			group.Links = append(group.Links, aci.Link{Kind: kind, DN: dn, Origin: aci.External})
		}
	}
	return group, rec.EndpointGroupID, nil
}

// groupRules are the rules under a group's policies that let something through, sorted.
func groupRules(x *tx, g *contivmodel.EndpointGroup) []*contivmodel.Rule {
	var rules []*contivmodel.Rule
	for _, key := range contivmodel.Keys(g.TenantName, g.Policies...) {
		rules = allowing(rules, x.rules.where(x.rules.ofPolicy, key))
	}
	return rules
}

// allowing appends, in the order of their keys, the rules that let something through:
// what a fabric has no contract for it drops by itself.
func allowing(to []*contivmodel.Rule, rules iter.Seq2[string, *contivmodel.Rule]) []*contivmodel.Rule {
	found := maps.Collect(rules)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if r := found[key]; r.Action == contivmodel.ActionAllow {
			to = append(to, r)
		}
	}
	return to
}

// contract is the name of a rule's contract and what the rule adds to it.
func contract(r *contivmodel.Rule) (string, aci.Filter, error) {
	if place := cmp.Or(r.FromIPAddress, r.ToIPAddress, r.FromNetwork, r.ToNetwork); place != "" {
		return "", aci.Filter{}, errs.New(errs.Invalid,
			"rule %s names %s: an ACI fabric knows no addresses and networks in rules, expected groups, protocol and port only", r.Key, place)
	}
	name := r.PolicyName + "Expose"
	switch {
	case r.FromEndpointGroup != "":
		name = r.PolicyName + "Frm" + r.FromEndpointGroup
	case r.ToEndpointGroup != "":
		name = r.PolicyName + "To" + r.ToEndpointGroup
	}
	return name, aci.Filter{Protocol: r.Protocol, Port: strconv.Itoa(r.Port)}, nil
}

// link adds a contract of the profile to a group's, once.
func link(links []aci.Link, kind aci.LinkKind, name string) []aci.Link {
	l := aci.Link{Kind: kind, Contract: name, Origin: aci.Internal}
	if slices.Contains(links, l) {
		return links
	}
	return append(links, l)
}
