package intent

import (
	"github.com/contiv/netplugin/contivmodel"
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
		oper: m.policyOper,
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
