package intent

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/policy"
	"github.com/contiv/netplugin/utils/errs"
)

type policyTables struct {
	*objects[contivmodel.Policy, contivmodel.PolicyOper]
	ofTenant *index[string, contivmodel.Policy]
}

func registerPolicies(m *model) policyTables {
	t := policyTables{objects: register(m, contivmodel.PolicyKind(), lifecycle[contivmodel.Policy, contivmodel.PolicyOper]{
		create: func(x *tx, p *contivmodel.Policy) error {
			if err := needTenant(x, p.TenantName); err != nil {
				return err
			}
			x.policies.put(x, p.Key, p)
			return nil
		},
		update: updatePolicy,
		remove: removePolicy,
		view:   m.viewPolicy,
		ask: func(ctx context.Context, e *Engine, p *contivmodel.Policy) (contivmodel.PolicyOper, error) {
			return e.inspectPolicy(ctx, p)
		},
	})}
	t.ofTenant = t.indexed(func(_ string, p *contivmodel.Policy) string { return p.TenantName })
	return t
}

// updatePolicy changes a policy's mode and whether it is audited, which is in the records of
// its rules. Creating a policy again is not an error.
func updatePolicy(x *tx, old, p *contivmodel.Policy) error {
	if old.Mode == p.Mode && old.Audit == p.Audit {
		return nil
	}
	x.policies.put(x, p.Key, p)
	for _, g := range x.groups.where(x.groups.ofPolicy, p.Key) {
		for _, r := range x.rules.where(x.rules.ofPolicy, p.Key) {
			if err := expandRule(x, r, g); err != nil {
				return err
			}
		}
		if err := checkFabric(x, appsWith(x, g.Key)...); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) viewPolicy(p *contivmodel.Policy) {
	p.LinkSets = contivmodel.PolicyLinkSets{
		EndpointGroups: contivmodel.NewLinkSet(contivmodel.EndpointGroupType, sortedKeys(m.groups.ofPolicy, p.Key)),
		Rules:          contivmodel.NewLinkSet(contivmodel.RuleType, sortedKeys(m.rules.ofPolicy, p.Key)),
	}
}

// removePolicy fails while groups use the policy. Its rules are removed with it.
func removePolicy(x *tx, p *contivmodel.Policy) error {
	if blockers := names(x.groups.where(x.groups.ofPolicy, p.Key), keyOf[contivmodel.EndpointGroup]); blockers != "" {
		return errs.New(errs.InUse, "Policy is being used: %s by endpoint groups %s", p.Key, blockers)
	}
	for key := range x.rules.where(x.rules.ofPolicy, p.Key) {
		x.rules.del(x, key)
	}
	return nil
}

func (m *model) policyOper(p *contivmodel.Policy, hosts vteps) (contivmodel.PolicyOper, error) {
	var oper contivmodel.PolicyOper
	for _, key := range sortedKeys(m.groups.ofPolicy, p.Key) {
		g := m.groups.base[key].v
		oper.Endpoints = append(oper.Endpoints, m.endpointOpers(m.endpoints.ofGroup, groupID(g), hosts)...)
	}
	oper.NumEndpoints = len(oper.Endpoints)
	return oper, nil
}

// inspectPolicy also asks the agents of all hosts for the rules' counters.
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

// ruleHits sums up, by rule, the counters of the records of all groups.
func (m *model) ruleHits(p *contivmodel.Policy, hits map[string]agents.Hits) []contivmodel.RuleHits {
	var all []contivmodel.RuleHits
	for _, key := range sortedKeys(m.rules.ofPolicy, p.Key) {
		sum := contivmodel.RuleHits{Rule: key}
		for group := range m.groups.ofPolicy.under(p.Key) {
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
