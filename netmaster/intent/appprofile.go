package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func (e *Engine) appProfiles() *collection[contivmodel.AppProfile, contivmodel.NoOper] {
	return &collection[contivmodel.AppProfile, contivmodel.NoOper]{
		e: e, kind: contivmodel.AppProfileKind(), rows: e.model.apps,
		create: func(x *tx, p *contivmodel.AppProfile) error {
			if err := needTenant(x, p.TenantName); err != nil {
				return err
			}
			return putApp(x, p)
		},
		update: func(x *tx, _, p *contivmodel.AppProfile) error { return putApp(x, p) },
		remove: func(*tx, *contivmodel.AppProfile) error { return nil },
	}
}

// putApp plans an app profile, all of whose groups must exist. In ACI mode a profile is
// what the gateway builds the fabric's policies from, so it must be one that can be
// told.
func putApp(x *tx, p *contivmodel.AppProfile) error {
	for _, name := range p.EndpointGroups {
		if _, ok := x.groups.get(modelKey(p.TenantName, name)); !ok {
			return errs.New(errs.NotFound, "EndpointGroup %s not found", modelKey(p.TenantName, name))
		}
	}
	linkApp(p)
	x.apps.put(x, p.Key, p)
	return checkFabric(x, p)
}

// linkApp sets the links that follow from what an app profile names.
func linkApp(p *contivmodel.AppProfile) {
	p.Links.Tenant = tenantLink(p.TenantName)
	p.LinkSets.EndpointGroups = contivmodel.NewLinkSet(contivmodel.EndpointGroupKind().Type, inTenant(p.TenantName, p.EndpointGroups...))
}
