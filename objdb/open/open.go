// Package open connects a daemon to the cluster store that its options name. It knows
// the stores a daemon is a client of; the one inside netmaster is netmaster's alone.
package open

import (
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/errs"
)

// Store makes a client of the store that validated options name. It does not wait for a
// server. An error means that the options are wrong (kind Invalid).
func Store(o cliconf.Store) (objdb.Store, error) {
	switch o.Kind {
	case cliconf.StoreEtcd:
		s, err := etcd.New(etcd.Config{
			Endpoints: o.Endpoints, CA: o.CA, Cert: o.Cert, Key: o.Key, User: o.User, Password: o.Password,
		})
		if err != nil {
			return nil, err // not a nil *etcd.Store in an interface
		}
		return s, nil
	case cliconf.StoreConsul:
		s, err := consul.New(consul.Config{Endpoints: o.Endpoints, CA: o.CA, Cert: o.Cert, Key: o.Key, Token: o.Token})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, errs.New(errs.Invalid, "store %q: expected etcd or consul", o.Kind)
}
