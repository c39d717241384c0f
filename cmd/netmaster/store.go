package main

import (
	"context"
	"net/netip"
	"net/url"
	"os"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/open"
	"github.com/contiv/netplugin/state/rights"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/tlsport"
)

// member are the options of a store that runs in this process.
type member struct{ cfg embedded.Config }

// flags returns the options; --store, which chooses between this and a store that runs
// elsewhere, is one of them.
func (m *member) flags(store *cliconf.Store) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "store", Category: "store", Destination: &store.Kind, Sources: env.Var("STORE"),
			Usage: "embedded (etcd in this process), etcd or consul (default: according to the endpoints, otherwise etcd)",
		},
		&cli.StringFlag{
			Name: "store-dir", Category: "store", Value: "/var/lib/contiv/etcd", Destination: &m.cfg.Dir, Sources: env.Var("STORE_DIR"),
			Usage: "`directory` of the embedded store",
		},
		&cli.StringFlag{
			Name: "store-listen", Category: "store", Value: "127.0.0.1:2379", Destination: &m.cfg.ListenClient, Sources: env.Var("STORE_LISTEN"),
			Usage: "`ip:port` on which the embedded store serves agents",
		},
		&cli.StringFlag{
			Name: "store-peer-listen", Category: "store", Destination: &m.cfg.ListenPeer, Sources: env.Var("STORE_PEER_LISTEN"),
			Usage: "`ip:port` on which it serves other members (default: its own in --store-initial-cluster)",
		},
		&cli.StringFlag{
			Name: "store-initial-cluster", Category: "store", Destination: &m.cfg.InitialCluster, Sources: env.Var("STORE_INITIAL_CLUSTER"),
			Usage: "all members of the embedded store, `name=http://ip:port,…` (default: only this one)",
		},
		&cli.StringFlag{
			Name: "store-name", Category: "store", Destination: &m.cfg.Name, Sources: env.Var("STORE_NAME"),
			Usage: "`name` of this member (default: the one in the list with --store-peer-listen, otherwise the host name)",
		},
	}
}

// validate checks the options if the store is to be embedded.
func (m *member) validate(store *cliconf.Store) error {
	if store.Kind != cliconf.StoreEmbedded {
		return nil
	}
	if m.cfg.InitialCluster == "" {
		if m.cfg.ListenPeer != "" {
			return cliconf.Usagef("--store-peer-listen requires --store-initial-cluster")
		}
	} else if m.cfg.Name == "" && m.cfg.ListenPeer == "" {
		name, err := os.Hostname()
		if err != nil {
			return cliconf.Usagef("--store-name is not set and the host name is unknown: %w", err)
		}
		m.cfg.Name = name
	}
	if err := m.cfg.Validate(); err != nil {
		return cliconf.Usagef("--store embedded: %w", err)
	}
	return nil
}

// opener returns what connects the daemon to its store.
func (o *options) opener(s *security, log logrus.FieldLogger) func(context.Context) (objdb.Store, error) {
	if o.store.Kind == cliconf.StoreEmbedded {
		cfg := o.member.cfg
		cfg.Log, cfg.Mode, cfg.Credentials, cfg.AgentReads = log, o.secure.Mode, s.creds, rights.AgentReads()
		return func(ctx context.Context) (objdb.Store, error) { return embedded.Open(ctx, cfg) }
	}
	return func(context.Context) (objdb.Store, error) { return open.Store(o.store) }
}

// checkStoreIsClosed refuses a store that anybody who reaches it can write, where only TLS is
// allowed. On the host itself it is the host's business who reaches it.
func (o *options) checkStoreIsClosed() error {
	if o.secure.Mode != tlsport.Require || o.store.Kind == cliconf.StoreEmbedded {
		return nil
	}
	for _, text := range o.store.Endpoints {
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "https" {
			continue
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsLoopback() || u.Hostname() == "localhost" {
			continue
		}
		return cliconf.Usagef("--tls require, but the store %s is not secured: whoever reaches it can change the cluster; use https:// with client certificates, or --tls accept until it has them", text)
	}
	return nil
}
