package intent

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/policy"
	"github.com/contiv/netplugin/utils/errs"
)

func (e *Engine) policies() *collection[contivmodel.Policy, contivmodel.PolicyOper] {
	m := e.model
	return &collection[contivmodel.Policy, contivmodel.PolicyOper]{
		e: e, kind: contivmodel.PolicyKind(), rows: m.policies,
		create: func(x *tx, p *contivmodel.Policy) error {
			if err := needTenant(x, p.TenantName); err != nil {
				return err
			}
			p.Links.Tenant = tenantLink(p.TenantName)
			x.policies.put(x, p.Key, p)
			return nil
		},
		// There is nothing in a policy that could change: to create it again is no error.
		update: func(*tx, *contivmodel.Policy, *contivmodel.Policy) error { return nil },
		remove: removePolicy,
		view: func(p *contivmodel.Policy) *contivmodel.Policy {
			v := *p
			v.LinkSets = contivmodel.PolicyLinkSets{
				EndpointGroups: contivmodel.NewLinkSet(contivmodel.EndpointGroupKind().Type, sortedKeys(m.groupsOfPolicy, p.Key)),
				Rules:          contivmodel.NewLinkSet(contivmodel.RuleKind().Type, sortedKeys(m.rulesOfPolicy, p.Key)),
			}
			return &v
		},
		ask: e.inspectPolicy,
	}
}

// removePolicy refuses while groups are under the policy. Its rules go with it.
func removePolicy(x *tx, p *contivmodel.Policy) error {
	if blockers := names(x.groups.where(x.groupsOfPolicy, p.Key), keyOf[contivmodel.EndpointGroup]); blockers != "" {
		return errs.New(errs.InUse, "Policy is being used: %s by endpoint groups %s", p.Key, blockers)
	}
	for key := range x.rules.where(x.rulesOfPolicy, p.Key) {
		x.rules.del(x, key)
	}
	return nil
}

func (m *model) policyOper(p *contivmodel.Policy, hosts vteps) (contivmodel.PolicyOper, error) {
	var oper contivmodel.PolicyOper
	for _, key := range sortedKeys(m.groupsOfPolicy, p.Key) {
		g := m.groups.base[key].v
		oper.Endpoints = append(oper.Endpoints, m.endpointOpers(m.endpointsOfGroup, groupID(g), hosts)...)
	}
	oper.NumEndpoints = len(oper.Endpoints)
	return oper, nil
}

// inspectPolicy also asks the agents of all hosts how often the rules have decided.
func (e *Engine) inspectPolicy(ctx context.Context, p *contivmodel.Policy) (oper contivmodel.PolicyOper, err error) {
	hosts, err := e.vteps(ctx)
	if err != nil {
		return oper, err
	}
	var (
		hits   map[string]agents.Hits
		asked  int
		silent []string
	)
	if len(p.LinkSets.Rules) > 0 && len(p.LinkSets.EndpointGroups) > 0 {
		if hits, asked, silent, err = e.agents.RuleHits(ctx); err != nil {
			return oper, err
		}
	}
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	if oper, err = m.policyOper(p, hosts); err != nil {
		return oper, err
	}
	oper.SilentHosts = silent
	if asked > 0 {
		oper.RuleHits = m.ruleHits(p, hits)
	}
	return oper, nil
}

// ruleHits sums up, by rule, what the records of its groups have decided.
func (m *model) ruleHits(p *contivmodel.Policy, hits map[string]agents.Hits) []contivmodel.RuleHits {
	var all []contivmodel.RuleHits
	for _, key := range sortedKeys(m.rulesOfPolicy, p.Key) {
		sum := contivmodel.RuleHits{Rule: key}
		for group := range m.groupsOfPolicy.keys[p.Key] {
			for _, name := range policy.Names() {
				h := hits[policy.RuleID(group, m.rules.base[key].v, name)]
				sum.Packets += h.Packets
				sum.Bytes += h.Bytes
			}
		}
		all = append(all, sum)
	}
	return all
}
