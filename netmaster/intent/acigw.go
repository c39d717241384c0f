package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
)

func (e *Engine) gateways() *collection[contivmodel.AciGw, contivmodel.AciGwOper] {
	m := e.model
	put := func(x *tx, g *contivmodel.AciGw) error {
		if n := count(x.apps.all()); n > 0 {
			e.cfg.Log.WithField("appProfiles", n).Warn("the ACI gateway's settings change under existing app profiles")
		}
		x.gateways.put(x, g.Key, g)
		return nil
	}
	return &collection[contivmodel.AciGw, contivmodel.AciGwOper]{
		e: e, kind: contivmodel.AciGwKind(), rows: m.gateways,
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
	}
}
