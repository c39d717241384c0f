// Package open connects a daemon to the cluster store that its options name. It knows
// the stores a daemon is a client of; the one inside netmaster is netmaster's alone.
package open

import (
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// Store makes a client of the store that validated options name. It does not wait for a
// server. An error means that the options are wrong (kind Invalid).
func Store(o cliconf.Store) (objdb.Store, error) { return Agent(o, nil, tlsport.Off) }

// Agent is Store for an agent that is known in its cluster by credentials. Unless the options
// say how to reach an etcd of the user's own (certificate files, a user), the servers are
// netmasters: in mode accept reached by TLS, or without where one has none; in mode require
// by TLS only.
func Agent(o cliconf.Store, c *pki.Credentials, mode tlsport.Mode) (objdb.Store, error) {
	switch o.Kind {
	case cliconf.StoreEtcd:
		cfg := etcd.Config{
			Endpoints: o.Endpoints, CA: o.CA, Cert: o.Cert, Key: o.Key, User: o.User, Password: o.Password,
		}
		if c != nil && mode.TLS() && o.TLS == (cliconf.TLS{}) && o.User == "" {
			cfg.Cluster, cfg.PlainToo = c, mode == tlsport.Accept
		}
		s, err := etcd.New(cfg)
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
