// Package consul keeps the store contract of package objdb on a cluster of Consul
// servers (1.20), reached through any of their agents.
//
// # How the contract maps
//
// Keys lose their leading slash. A revision is a Raft index: ModifyIndex and
// CreateIndex of a key, X-Consul-Index of a list. Reads are consistent, i.e. confirmed
// by the leader.
//
// A transaction is one request to /v1/txn, comparisons first. Consul compares missing keys
// and ModifyIndex; a comparison with a value, or with the revision of creation, becomes
// "the index is still the one at which that was true", learned by reading the key or
// from the last such transaction. When only such an assumption fails the key is read
// again: either the comparison indeed does not hold, or the transaction is sent once
// more. The servers execute 64 operations at most, hence MaxOps.
//
// A lease is a session whose keys are deleted when it ends. A put under a lease locks
// the key; a put without one must not leave a key locked, so it says "and nobody holds
// it", and unlocks the key in the same transaction where somebody does.
//
// A watch is a blocking query for the list of a prefix, compared with the one before.
//
// # Where Consul differs
//
//   - Sessions live 10 s at least; shorter leases are rounded up. The servers end a
//     session that is not renewed after up to twice its TTL.
//   - A watch sees the newest state only: changes that follow each other quickly arrive
//     as one, at the newest revision. A key that was deleted and made again in between
//     is reported as deleted and put.
//   - A put of the value a key already has changes nothing, not even its ModRevision,
//     and causes no event.
//   - Every change makes the servers send the whole prefix to every watch of it.
//   - A transaction with all its keys and values, which travel in base64, has to fit into
//     limits.txn_max_req_len of the agents, 512 KiB unless set otherwise. A single
//     put without comparison goes another way and may be MaxValue long.
//   - Keys must be valid UTF-8.
package consul

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
)

// Config says where the agents are and who we are to them.
type Config struct {
	Endpoints []string // URLs, http or https; the next is used when one fails
	Token     string   // ACL token; empty: that of the agent, or anonymous
	CA        string   // PEM file; empty: the system's authorities
	Cert, Key string   // PEM files, read again for every connection; empty: no client certificate
}

// Store is an objdb.Store on Consul.
type Store struct {
	clients []*api.Client
	current atomic.Int32 // the client that is used
	idle    func()       // closes idle connections
	name    string       // what the store is called in errors

	hints    hints
	leases   leases
	refusals remote.Refusals

	life *remote.Lifetime // ends with Close
}

var _ objdb.Store = (*Store)(nil)

// New makes a Store. It does not wait for a server: a cluster that is down is waited
// for by the requests. An error means that the Config is wrong (kind Invalid).
func New(cfg Config) (*Store, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errs.New(errs.Invalid, "consul: no endpoint, expected at least one URL")
	}
	tlsConfig, err := remote.TLS("consul", cfg.CA, cfg.Cert, cfg.Key)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		DialContext: (&net.Dialer{
			Timeout: 2 * time.Second,
			// A peer that vanished without a word is noticed after 10 + 3 s.
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: time.Second, Count: 3},
		}).DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 3 * time.Second,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
	}
	s := &Store{name: "consul at " + strings.Join(cfg.Endpoints, ","), idle: base.CloseIdleConnections, life: remote.NewLifetime()}
	client := &http.Client{
		Transport: transport{base},
		// An agent redirects keys it takes for paths that are not clean.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, e := range cfg.Endpoints {
		scheme, address, ok := strings.Cut(e, "://")
		if !ok || scheme != "http" && scheme != "https" {
			return nil, errs.New(errs.Invalid, "consul: endpoint %q is not an http or https URL", e)
		}
		c, err := api.NewClient(&api.Config{Address: strings.TrimSuffix(address, "/"), Scheme: scheme, Token: cfg.Token, HttpClient: client})
		if err != nil {
			return nil, errs.New(errs.Invalid, "consul at %s: %w", e, err)
		}
		s.clients = append(s.clients, c)
	}
	return s, nil
}

// Close implements objdb.Store.
func (s *Store) Close() error {
	s.life.End()
	s.life.Wait()
	s.idle()
	return nil
}
