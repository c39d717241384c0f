package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

type contractsTables struct {
	*objects[contivmodel.ExtContractsGroup, contivmodel.NoOper]
	ofTenant *index[string, contivmodel.ExtContractsGroup]
}

func registerContracts(m *model) contractsTables {
	t := contractsTables{objects: register(m, contivmodel.ExtContractsGroupKind(), lifecycle[contivmodel.ExtContractsGroup, contivmodel.NoOper]{
		create: func(x *tx, c *contivmodel.ExtContractsGroup) error {
			if err := needTenant(x, c.TenantName); err != nil {
				return err
			}
			x.contracts.put(x, c.Key, c)
			return nil
		},
		update: func(_ *tx, c, _ *contivmodel.ExtContractsGroup) error {
			return errs.New(errs.Exists, "external contracts update not supported: %s exists", c.Key)
		},
		remove: func(x *tx, c *contivmodel.ExtContractsGroup) error {
			if blockers := names(x.groups.where(x.groups.ofContracts, c.Key), keyOf[contivmodel.EndpointGroup]); blockers != "" {
				return errs.New(errs.InUse, "External contracts group is in-use: %s by endpoint groups %s", c.Key, blockers)
			}
			return nil
		},
		view: func(c *contivmodel.ExtContractsGroup) {
			c.LinkSets.EndpointGroups = contivmodel.NewLinkSet(contivmodel.EndpointGroupType, sortedKeys(m.groups.ofContracts, c.Key))
		},
	})}
	t.ofTenant = t.indexed(func(_ string, c *contivmodel.ExtContractsGroup) string { return c.TenantName })
	return t
}
