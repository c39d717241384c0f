package intent

import (
	"fmt"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func (e *Engine) tenants() *collection[contivmodel.Tenant, contivmodel.TenantOper] {
	m := e.model
	return &collection[contivmodel.Tenant, contivmodel.TenantOper]{
		e: e, kind: contivmodel.TenantKind(), rows: m.tenants,
		create: func(x *tx, t *contivmodel.Tenant) error {
			x.tenants.put(x, t.Key, t)
			return nil
		},
		update: func(_ *tx, t, _ *contivmodel.Tenant) error {
			return errs.New(errs.Exists, "cannot change tenant parameters after creation: tenant %s exists", t.TenantName)
		},
		remove: removeTenant,
		view:   m.viewTenant,
		oper:   m.tenantOper,
	}
}

// removeTenant refuses while anything belongs to the tenant.
func removeTenant(x *tx, t *contivmodel.Tenant) error {
	for _, has := range []struct {
		count int
		what  string
	}{
		{count(x.apps.where(x.appsOfTenant, t.TenantName)), "app profiles"},
		{count(x.groups.where(x.groupsOfTenant, t.TenantName)), "endpoint groups"},
		{count(x.policies.where(x.policiesOfTenant, t.TenantName)), "policies"},
		{count(x.profiles.where(x.profilesOfTenant, t.TenantName)), "net profiles"},
		{count(x.networks.where(x.networksOfTenant, t.TenantName)), "networks"},
		{count(x.services.where(x.servicesOfTenant, t.TenantName)), "services"},
		{count(x.contracts.where(x.contractsOfTenant, t.TenantName)), "external contracts groups"},
	} {
		if has.count > 0 {
			return errs.New(errs.InUse, "cannot delete tenant %s: it has %d %s", t.TenantName, has.count, has.what)
		}
	}
	return nil
}

func (m *model) viewTenant(t *contivmodel.Tenant) *contivmodel.Tenant {
	v := *t
	v.LinkSets = contivmodel.TenantLinkSets{
		AppProfiles:    contivmodel.NewLinkSet(contivmodel.AppProfileKind().Type, sortedKeys(m.appsOfTenant, t.TenantName)),
		EndpointGroups: contivmodel.NewLinkSet(contivmodel.EndpointGroupKind().Type, sortedKeys(m.groupsOfTenant, t.TenantName)),
		NetProfiles:    contivmodel.NewLinkSet(contivmodel.NetprofileKind().Type, sortedKeys(m.profilesOfTenant, t.TenantName)),
		Networks:       contivmodel.NewLinkSet(contivmodel.NetworkKind().Type, sortedKeys(m.networksOfTenant, t.TenantName)),
		Policies:       contivmodel.NewLinkSet(contivmodel.PolicyKind().Type, sortedKeys(m.policiesOfTenant, t.TenantName)),
		Servicelbs:     contivmodel.NewLinkSet(contivmodel.ServiceLBKind().Type, sortedKeys(m.servicesOfTenant, t.TenantName)),
	}
	return &v
}

func (m *model) tenantOper(t *contivmodel.Tenant, hosts vteps) (contivmodel.TenantOper, error) {
	var oper contivmodel.TenantOper
	for _, key := range sortedKeys(m.networksOfTenant, t.TenantName) {
		n, err := m.networkOper(m.networks.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("network %s: %w", key, err)
		}
		oper.Networks = append(oper.Networks, n)
		oper.Endpoints = append(oper.Endpoints, n.Endpoints...)
		oper.TotalEndpoints += n.NumEndpoints
	}
	for _, key := range sortedKeys(m.groupsOfTenant, t.TenantName) {
		g, err := m.groupOper(m.groups.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("endpoint group %s: %w", key, err)
		}
		oper.EndpointGroups = append(oper.EndpointGroups, g)
	}
	for _, key := range sortedKeys(m.policiesOfTenant, t.TenantName) {
		p, err := m.policyOper(m.policies.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("policy %s: %w", key, err)
		}
		oper.Policies = append(oper.Policies, p)
	}
	for _, key := range sortedKeys(m.servicesOfTenant, t.TenantName) {
		s, err := m.serviceOper(m.services.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("service %s: %w", key, err)
		}
		oper.Servicelbs = append(oper.Servicelbs, s)
	}
	oper.TotalServicelbs = len(oper.Servicelbs)
	oper.TotalAppProfiles = len(m.appsOfTenant.keys[t.TenantName])
	oper.TotalPolicies, oper.TotalNetprofiles = len(oper.Policies), len(m.profilesOfTenant.keys[t.TenantName])
	oper.TotalNetworks, oper.TotalEPGs = len(oper.Networks), len(oper.EndpointGroups)
	return oper, nil
}
