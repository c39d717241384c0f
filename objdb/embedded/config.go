// Package embedded runs an etcd server in this process and keeps the store contract
// of package objdb on it, so that a cluster needs no store of its own to be operated:
// one netmaster is a store of one member, three that name each other in
// InitialCluster are a store of three.
//
// Other processes (the agents) use it like any etcd, through ListenClient. This
// process uses it without a socket.
package embedded

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

const (
	// maxOps is what our server takes per transaction; etcd's own default is 128.
	maxOps = 1024
	// maxRequest bounds a request, in bytes; it exceeds objdb.MaxTxnBytes by the framing.
	maxRequest = 2 << 20
	// quota is how large the data may become, in bytes. Beyond it writes fail.
	quota = 4 << 30
	// history is how many revisions are kept for watchers that were down; a watcher
	// that missed more gets a snapshot.
	history = "50000"
	// catchUp is how many log entries a member that is alone keeps in memory: no other one
	// ever asks for them, and one has up to a transaction's bytes.
	catchUp = 100
)

// Config describes one member.
type Config struct {
	Dir string // where the data lives; made if missing

	// ListenClient is the host:port where other processes reach the store.
	ListenClient string

	// The following are for clusters of several members only.

	// InitialCluster lists all members, "name=http://host:port,…" (the scheme may be
	// left out): who is asked when a member starts for the first time. Empty: this
	// member alone. With TLS, https is what the scheme is by default; in mode require it is
	// https whatever the list says.
	InitialCluster string
	// Name is this member in InitialCluster. Empty: the member whose address is
	// ListenPeer.
	Name string
	// ListenPeer is the host:port where the other members reach this one. Empty: its
	// address in InitialCluster.
	ListenPeer string

	// Mode is how clients and other members are served. With TLS, Credentials say who this
	// member is; clients are netmasters, which may do everything, and agents, which read.
	Mode        tlsport.Mode // "": off
	Credentials *pki.Credentials
	// AgentReads lists the prefixes that agents may read; they may do nothing else.
	AgentReads []string
	// Plain is called with the address of every plain client in mode accept; may be nil.
	Plain func(net.Addr)

	Log    logrus.FieldLogger // nil: what the server has to say is dropped
	NoSync bool               // do not wait for the disk; for tests
}

func (c Config) secure() bool { return c.Mode != "" && c.Mode.TLS() }

// Validate reports what is wrong with c, as an error of kind Invalid.
func (c Config) Validate() error {
	_, err := c.server(newLogger(nil))
	return err
}

// server translates c for the etcd library.
func (c Config) server(log *logger) (*embed.Config, error) {
	if c.Dir == "" {
		return nil, errs.New(errs.Invalid, "the store's directory is not set")
	}
	client, err := memberURL(c.ListenClient)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the store's client address: %w", err)
	}
	e := embed.NewConfig()
	e.Dir = c.Dir
	e.ListenClientUrls, e.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	if c.secure() {
		e.ListenClientUrls = nil // clientPort listens there
	}
	e.MaxTxnOps = maxOps
	e.MaxRequestBytes = maxRequest
	e.QuotaBackendBytes = quota
	e.AutoCompactionMode = embed.CompactorModeRevision
	e.AutoCompactionRetention = history
	e.EnableGRPCGateway = false
	e.UnsafeNoFsync = c.NoSync
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log.zap())
	if c.InitialCluster == "" {
		// Nobody to hold an election with: no peer socket, and a fast clock.
		e.Name = "single"
		e.InitialCluster = e.Name + "=http://127.0.0.1:2380"
		e.ListenPeerUrls = nil
		e.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2380"}}
		e.TickMs, e.ElectionMs = 10, 100
		e.SnapshotCatchUpEntries = catchUp
		return e, nil
	}
	e.TickMs, e.ElectionMs = 100, 1000
	return e, c.clustered(e)
}

// checkTLS reports what is wrong once it is known whether there is TLS.
func (c Config) checkTLS(e *embed.Config) error {
	switch {
	case c.secure() && c.Credentials == nil:
		return errs.New(errs.Invalid, "the store is to serve TLS, but has no certificate")
	case !c.secure() && strings.Contains(e.InitialCluster, "=https://"):
		return errs.New(errs.Invalid, "members of the store's initial cluster are to be reached by https, which takes TLS (--tls accept or require)")
	}
	return nil
}

func (c Config) clustered(e *embed.Config) error {
	var members []string
	name, self := c.Name, url.URL{}
	for text := range strings.SplitSeq(c.InitialCluster, ",") {
		n, address, ok := strings.Cut(strings.TrimSpace(text), "=")
		if !ok || n == "" {
			return errs.New(errs.Invalid, "member %q of the store's initial cluster is not name=host:port", text)
		}
		u, err := memberURL(address)
		if c.secure() && (c.Mode == tlsport.Require || !strings.Contains(address, "://")) {
			u.Scheme = "https"
		}
		if err != nil {
			return errs.New(errs.Invalid, "member %s of the store's initial cluster: %w", n, err)
		}
		if slices.ContainsFunc(members, func(m string) bool { return strings.HasPrefix(m, n+"=") }) {
			return errs.New(errs.Invalid, "member %s is listed twice in the store's initial cluster", n)
		}
		members = append(members, n+"="+u.String())
		if name == n || name == "" && u.Host == c.ListenPeer {
			name, self = n, u
		}
	}
	if self.Host == "" {
		return errs.New(errs.Invalid, "this member (name %q, peer address %q) is not in the store's initial cluster %q", c.Name, c.ListenPeer, c.InitialCluster)
	}
	listen := self
	if c.ListenPeer != "" {
		var err error
		if listen, err = memberURL(c.ListenPeer); err != nil {
			return errs.New(errs.Invalid, "the store's peer address: %w", err)
		}
	}
	e.Name = name
	e.InitialCluster = strings.Join(members, ",")
	e.InitialClusterToken = "contiv"
	e.AdvertisePeerUrls, e.ListenPeerUrls = []url.URL{self}, []url.URL{listen}
	return nil
}

// memberURL parses host:port with or without http:// or https:// in front.
func memberURL(text string) (url.URL, error) {
	scheme := "http"
	address, secure := strings.CutPrefix(strings.TrimSpace(text), "https://")
	if secure {
		scheme = "https"
	}
	address = strings.TrimPrefix(address, "http://")
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || net.ParseIP(host) == nil {
		return url.URL{}, errs.New(errs.Invalid, "%q is not an IP address and a port", text)
	}
	return url.URL{Scheme: scheme, Host: address}, nil
}
