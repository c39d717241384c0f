package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

type appTables struct {
	*objects[contivmodel.AppProfile, contivmodel.NoOper]
	ofTenant *index[string, contivmodel.AppProfile]
	ofGroup  *index[string, contivmodel.AppProfile] // by the group's key
}

func registerApps(m *model) appTables {
	t := appTables{objects: register(m, contivmodel.AppProfileKind(), lifecycle[contivmodel.AppProfile, contivmodel.NoOper]{
		create: func(x *tx, p *contivmodel.AppProfile) error {
			if err := needTenant(x, p.TenantName); err != nil {
				return err
			}
			return putApp(x, p)
		},
		update: func(x *tx, _, p *contivmodel.AppProfile) error { return putApp(x, p) },
	})}
	t.ofTenant = t.indexed(func(_ string, p *contivmodel.AppProfile) string { return p.TenantName })
	t.ofGroup = t.indexedEach(func(_ string, p *contivmodel.AppProfile) []string {
		return contivmodel.Keys(p.TenantName, p.EndpointGroups...)
	})
	return t
}

// putApp plans an app profile, all of whose groups must exist. In ACI mode the gateway
// builds the fabric's policies from it, so it must be one that the gateway can express.
func putApp(x *tx, p *contivmodel.AppProfile) error {
	for _, name := range p.EndpointGroups {
		if _, ok := x.groups.get(modelKey(p.TenantName, name)); !ok {
			return errs.New(errs.NotFound, "EndpointGroup %s not found", modelKey(p.TenantName, name))
		}
	}
	x.apps.put(x, p.Key, p)
	return checkFabric(x, p)
}
