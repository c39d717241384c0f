package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func registerGateways(m *model) *objects[contivmodel.AciGw, contivmodel.AciGwOper] {
	put := func(x *tx, g *contivmodel.AciGw) error {
		if n := count(x.apps.all()); n > 0 {
			m.cfg.Log.WithField("appProfiles", n).Warn("the ACI gateway's settings change while app profiles exist")
		}
		x.gateways.put(x, g.Key, g)
		return nil
	}
	return register(m, contivmodel.AciGwKind(), lifecycle[contivmodel.AciGw, contivmodel.AciGwOper]{
		create: put,
		update: func(x *tx, _, g *contivmodel.AciGw) error { return put(x, g) },
		remove: func(x *tx, _ *contivmodel.AciGw) error {
			if n := count(x.apps.all()); n > 0 {
				return errs.New(errs.InUse, "%d App-Profiles found: delete them before the ACI gateway's settings", n)
			}
			return nil
		},
		oper: func(*contivmodel.AciGw, vteps) (contivmodel.AciGwOper, error) {
			return contivmodel.AciGwOper{NumAppProfiles: len(m.apps.base)}, nil
		},
	})
}
