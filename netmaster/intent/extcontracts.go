package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func (e *Engine) contracts() *collection[contivmodel.ExtContractsGroup, contivmodel.NoOper] {
	m := e.model
	return &collection[contivmodel.ExtContractsGroup, contivmodel.NoOper]{
		e: e, kind: contivmodel.ExtContractsGroupKind(), rows: m.contracts,
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
			if blockers := names(x.groups.where(x.groupsOfContracts, c.Key), keyOf[contivmodel.EndpointGroup]); blockers != "" {
				return errs.New(errs.InUse, "External contracts group is in-use: %s by endpoint groups %s", c.Key, blockers)
			}
			return nil
		},
		view: func(c *contivmodel.ExtContractsGroup) *contivmodel.ExtContractsGroup {
			v := *c
			v.LinkSets.EndpointGroups = contivmodel.NewLinkSet(contivmodel.EndpointGroupKind().Type, sortedKeys(m.groupsOfContracts, c.Key))
			return &v
		},
	}
}
