package intent

import (
	"fmt"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func registerTenants(m *model) *objects[contivmodel.Tenant, contivmodel.TenantOper] {
	return register(m, contivmodel.TenantKind(), lifecycle[contivmodel.Tenant, contivmodel.TenantOper]{
		update: func(_ *tx, t, _ *contivmodel.Tenant) error {
			return errs.New(errs.Exists, "cannot change tenant parameters after creation: tenant %s exists", t.TenantName)
		},
		remove: removeTenant,
		view:   m.viewTenant,
		oper:   m.tenantOper,
	})
}

// removeTenant fails while anything belongs to the tenant.
func removeTenant(x *tx, t *contivmodel.Tenant) error {
	for _, has := range []struct {
		count int
		what  string
	}{
		{count(x.apps.where(x.apps.ofTenant, t.TenantName)), "app profiles"},
		{count(x.groups.where(x.groups.ofTenant, t.TenantName)), "endpoint groups"},
		{count(x.policies.where(x.policies.ofTenant, t.TenantName)), "policies"},
		{count(x.profiles.where(x.profiles.ofTenant, t.TenantName)), "net profiles"},
		{count(x.networks.where(x.networks.ofTenant, t.TenantName)), "networks"},
		{count(x.services.where(x.services.ofTenant, t.TenantName)), "services"},
		{count(x.contracts.where(x.contracts.ofTenant, t.TenantName)), "external contracts groups"},
	} {
		if has.count > 0 {
			return errs.New(errs.InUse, "cannot delete tenant %s: it has %d %s", t.TenantName, has.count, has.what)
		}
	}
	return nil
}

func (m *model) viewTenant(t *contivmodel.Tenant) {
	t.LinkSets = contivmodel.TenantLinkSets{
		AppProfiles:    contivmodel.NewLinkSet(contivmodel.AppProfileType, sortedKeys(m.apps.ofTenant, t.TenantName)),
		EndpointGroups: contivmodel.NewLinkSet(contivmodel.EndpointGroupType, sortedKeys(m.groups.ofTenant, t.TenantName)),
		NetProfiles:    contivmodel.NewLinkSet(contivmodel.NetprofileType, sortedKeys(m.profiles.ofTenant, t.TenantName)),
		Networks:       contivmodel.NewLinkSet(contivmodel.NetworkType, sortedKeys(m.networks.ofTenant, t.TenantName)),
		Policies:       contivmodel.NewLinkSet(contivmodel.PolicyType, sortedKeys(m.policies.ofTenant, t.TenantName)),
		Servicelbs:     contivmodel.NewLinkSet(contivmodel.ServiceLBType, sortedKeys(m.services.ofTenant, t.TenantName)),
	}
}

func (m *model) tenantOper(t *contivmodel.Tenant, hosts vteps) (contivmodel.TenantOper, error) {
	var oper contivmodel.TenantOper
	for _, key := range sortedKeys(m.networks.ofTenant, t.TenantName) {
		n, err := m.networkOper(m.networks.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("network %s: %w", key, err)
		}
		oper.Networks = append(oper.Networks, n)
		oper.Endpoints = append(oper.Endpoints, n.Endpoints...)
		oper.TotalEndpoints += n.NumEndpoints
	}
	for _, key := range sortedKeys(m.groups.ofTenant, t.TenantName) {
		g, err := m.groupOper(m.groups.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("endpoint group %s: %w", key, err)
		}
		oper.EndpointGroups = append(oper.EndpointGroups, g)
	}
	for _, key := range sortedKeys(m.policies.ofTenant, t.TenantName) {
		p, err := m.policyOper(m.policies.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("policy %s: %w", key, err)
		}
		oper.Policies = append(oper.Policies, p)
	}
	for _, key := range sortedKeys(m.services.ofTenant, t.TenantName) {
		s, err := m.serviceOper(m.services.base[key].v, hosts)
		if err != nil {
			return oper, fmt.Errorf("service %s: %w", key, err)
		}
		oper.Servicelbs = append(oper.Servicelbs, s)
	}
	oper.TotalServicelbs = len(oper.Servicelbs)
	oper.TotalAppProfiles = m.apps.ofTenant.count(t.TenantName)
	oper.TotalPolicies, oper.TotalNetprofiles = len(oper.Policies), m.profiles.ofTenant.count(t.TenantName)
	oper.TotalNetworks, oper.TotalEPGs = len(oper.Networks), len(oper.EndpointGroups)
	return oper, nil
}
