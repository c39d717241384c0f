// Package etcd keeps the store contract of package objdb on a cluster of etcd v3
// servers (3.4 or newer).
//
// A Store connects by itself to whichever endpoint answers, and back when the
// connection is lost. Requests wait for a connection as long as their context allows,
// so "no connection" is never an error of its own, and a transaction that fails has
// either been refused by the servers or been sent with unknown outcome.
package etcd

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/internal/remote"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/signal"
)

// DefaultMaxOps is what an etcd server takes per transaction unless it was started
// with another --max-txn-ops.
const DefaultMaxOps = 128

// pageSize is how many keys one range request of List asks for. It bounds the memory
// of the server and the time it holds its read lock.
const pageSize = 10_000

// A member that loses its leader forgets the writes it had passed on, and says so after
// 7 s. These bound the wait: for a transaction, whose sender then has to find out, and
// for requests that can simply be repeated.
const (
	commitWithin = 3 * time.Second
	tryWithin    = 2 * time.Second
)

// Config says where the servers are and who we are to them.
type Config struct {
	Endpoints []string // URLs, http or https; all are used
	CA        string   // PEM file; empty: the system's authorities
	Cert, Key string   // PEM files; empty: no client certificate
	User      string   // empty: no login
	Password  string
	MaxOps    int // operations per transaction; 0: DefaultMaxOps

	// Cluster, if not nil, is who we are in a cluster of Contiv, whose netmasters are the
	// servers (the embedded store): connections use TLS, whatever scheme the endpoints have,
	// and the files above do not count. PlainToo goes on without TLS where a server has none.
	Cluster  *pki.Credentials
	PlainToo bool
}

// Store is an objdb.Store on etcd.
type Store struct {
	c      *clientv3.Client
	name   string // what the store is called in errors
	maxOps int
	page   int64

	life  *remote.Lifetime // ends with Close
	close func() error

	// Leases are renewed over a connection of their own: what is read and watched, which may
	// be much, is not before them.
	leaseOnce sync.Once
	dial      func() (*clientv3.Client, error) // nil: there is no connection, the server is in this process
	leases    *clientv3.Client

	reconnects signal.Signal // one broadcast per connection after the first
	refusals   remote.Refusals
}

var _ objdb.Store = (*Store)(nil)

// New makes a Store. It does not wait for a server: a cluster that is down is waited
// for by the requests. An error means that the Config is wrong (kind Invalid).
func New(cfg Config) (*Store, error) {
	tlsConfig, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithConnectParams(reconnect),
		grpc.WithChainUnaryInterceptor(waitForReadyUnary),
		grpc.WithChainStreamInterceptor(waitForReadyStream),
	}
	if cfg.User != "" {
		l := &login{user: cfg.User, password: cfg.Password}
		options = append(options, grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream))
	}
	if cfg.Cluster != nil {
		options = append(options, grpc.WithTransportCredentials(newClusterTLS(cfg.Cluster, cfg.PlainToo)))
	}
	dial := func() (*clientv3.Client, error) {
		return clientv3.New(clientv3.Config{
			Endpoints: cfg.Endpoints,
			TLS:       tlsConfig,
			// A peer that vanished without a word is noticed after 10 + 3 s.
			DialKeepAliveTime:    10 * time.Second,
			DialKeepAliveTimeout: 3 * time.Second,
			Logger:               zap.NewNop(), // what goes wrong reaches us as errors
			DialOptions:          options,
		})
	}
	c, err := dial()
	if err != nil {
		return nil, errs.New(errs.Invalid, "etcd at %s: %w", strings.Join(cfg.Endpoints, ","), err)
	}
	s := Wrap(c, "etcd at "+strings.Join(cfg.Endpoints, ","), cfg.MaxOps)
	s.dial = dial
	return s, nil
}

// Wrap makes a Store of a client that exists, and owns it from now on. name is what
// the store is called in errors; maxOps 0 means DefaultMaxOps.
func Wrap(c *clientv3.Client, name string, maxOps int) *Store {
	if maxOps == 0 {
		maxOps = DefaultMaxOps
	}
	s := &Store{c: c, name: name, maxOps: maxOps, page: pageSize, close: c.Close, life: remote.NewLifetime()}
	if conn := c.ActiveConnection(); conn != nil { // none when the server is in this process
		s.life.Go(func() { watchConnection(s.life.Context(), conn, &s.reconnects) })
	}
	return s
}

// Close implements objdb.Store.
func (s *Store) Close() error {
	s.life.End()
	err := s.close()
	s.leaseOnce.Do(func() { s.leases = s.c })
	if s.leases != s.c {
		_ = s.leases.Close() // it only ends what is under way
	}
	s.life.Wait()
	if err != nil && !errs.Is(err, errs.Unavailable) { // its own context is cancelled by now
		return fmt.Errorf("close %s: %w", s.name, err)
	}
	return nil
}

func (cfg Config) tls() (*tls.Config, error) {
	if cfg.Cluster != nil {
		return nil, nil // the dial option counts
	}
	secure := cfg.CA != "" || cfg.Cert != ""
	for _, e := range cfg.Endpoints {
		secure = secure || strings.HasPrefix(e, "https:")
	}
	if !secure {
		return nil, nil
	}
	return remote.TLS("etcd", cfg.CA, cfg.Cert, cfg.Key)
}
