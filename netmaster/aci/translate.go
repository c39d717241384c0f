package aci

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// View is the part of the intent that profiles are made of. Objects are found by key.
type View interface {
	Gateway() (*contivmodel.AciGw, bool)
	Group(key string) (*contivmodel.EndpointGroup, bool)
	// Records returns what agents realise of a group and of its network.
	Records(g *contivmodel.EndpointGroup) (*state.EndpointGroup, *state.Network, bool)
	Contracts(key string) (*contivmodel.ExtContractsGroup, bool)
	// RulesOf returns the rules of a policy, RulesNaming those that name a group.
	RulesOf(policy string) iter.Seq2[string, *contivmodel.Rule]
	RulesNaming(group string) iter.Seq2[string, *contivmodel.Rule]
}

// NewProfile translates an app profile. A contract stands for the rules of a policy
// that concern the same peer. A group under the policy provides it, or consumes it where
// the rules name whom the group may reach; the group they name does the opposite. What
// the fabric cannot express is left out and named by the error.
func NewProfile(v View, app *contivmodel.AppProfile) (Profile, error) {
	p := Profile{Version: APIVersion, Tenant: app.TenantName, Name: app.AppProfileName}
	if gw, ok := v.Gateway(); ok {
		p.Config = gw
	}
	var fault error // the first thing the fabric cannot express
	contracts := map[string][]Filter{}
	for _, key := range slices.Sorted(slices.Values(contivmodel.Keys(app.TenantName, app.EndpointGroups...))) {
		g, ok := v.Group(key)
		if !ok {
			continue
		}
		group, number, err := newGroup(v, g)
		if err != nil {
			return p, err
		}
		for _, r := range groupRules(v, g) {
			name, filter, err := contract(r)
			if err != nil {
				fault = cmp.Or(fault, err)
				continue
			}
			if !slices.Contains(contracts[name], filter) {
				contracts[name] = append(contracts[name], filter)
			}
			kind := Provide
			if r.ToEndpointGroup != "" {
				kind = Consume
			}
			group.Links = link(group.Links, kind, name)
		}
		for _, r := range allowing(nil, v.RulesNaming(key)) {
			name, _, err := contract(r)
			if err != nil {
				continue // reported where its own group is
			}
			kind := Provide
			if r.FromEndpointGroup == g.GroupName {
				kind = Consume
			}
			group.Links = link(group.Links, kind, name)
		}
		p.Groups, p.Numbers = append(p.Groups, group), append(p.Numbers, number)
	}
	for _, name := range slices.Sorted(maps.Keys(contracts)) {
		p.Contracts = append(p.Contracts, Contract{Name: name, Filters: contracts[name]})
	}
	return p, fault
}

// newGroup is a group without the contracts of its rules, and its number.
func newGroup(v View, g *contivmodel.EndpointGroup) (Group, int, error) {
	rec, net, ok := v.Records(g)
	if !ok {
		return Group{}, 0, errs.New(errs.Internal, "endpoint group %s or its network has no record", g.Key)
	}
	group := Group{Name: g.GroupName, Network: g.NetworkName, VLAN: strconv.Itoa(rec.PktTag)}
	if net.Gateway != "" {
		group.Gateway = fmt.Sprintf("%s/%d", net.Gateway, net.SubnetLen)
	}
	for _, key := range contivmodel.Keys(g.TenantName, g.ExtContractsGrps...) {
		c, ok := v.Contracts(key)
		if !ok {
			continue
		}
		kind := Provide
		if c.ContractsType == contivmodel.ContractsConsumed {
			kind = Consume
		}
		for _, dn := range c.Contracts {
			group.Links = append(group.Links, Link{Kind: kind, DN: dn, Origin: External})
		}
	}
	return group, rec.EndpointGroupID, nil
}

// groupRules are the rules under a group's policies that let something through, sorted.
func groupRules(v View, g *contivmodel.EndpointGroup) []*contivmodel.Rule {
	var rules []*contivmodel.Rule
	for _, key := range contivmodel.Keys(g.TenantName, g.Policies...) {
		rules = allowing(rules, v.RulesOf(key))
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
func contract(r *contivmodel.Rule) (string, Filter, error) {
	if place := cmp.Or(r.FromIPAddress, r.ToIPAddress, r.FromNetwork, r.ToNetwork); place != "" {
		return "", Filter{}, errs.New(errs.Invalid,
			"rule %s names %s: an ACI fabric knows no addresses and networks in rules, expected groups, protocol and port only", r.Key, place)
	}
	name := r.PolicyName + "Expose"
	switch {
	case r.FromEndpointGroup != "":
		name = r.PolicyName + "Frm" + r.FromEndpointGroup
	case r.ToEndpointGroup != "":
		name = r.PolicyName + "To" + r.ToEndpointGroup
	}
	return name, Filter{Protocol: r.Protocol, Port: strconv.Itoa(r.Port)}, nil
}

// link adds a contract of the profile to a group's, once.
func link(links []Link, kind LinkKind, name string) []Link {
	l := Link{Kind: kind, Contract: name, Origin: Internal}
	if slices.Contains(links, l) {
		return links
	}
	return append(links, l)
}
