package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/mgmtfn/socket"
	"github.com/contiv/netplugin/netmaster/audit"
	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/kubeca"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/netx"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
	"github.com/contiv/netplugin/utils/version"
)

// securityOptions are the options about who may ask this netmaster what.
type securityOptions struct {
	cliconf.Security
	secretFile, joinList string
	socket, authListen   string
	certTTL              time.Duration
	audit                auditOptions

	account, configMap string

	secret   []byte
	join     []string
	members  bool             // the store is embedded and has several members
	reviewer ca.TokenReviewer // nil: hosts do not join by ServiceAccount tokens
	// publish keeps a ConfigMap current; nil: there is none to keep.
	publish func(context.Context, *pki.Credentials)
}

func (s *securityOptions) flags() []cli.Flag {
	return append(
		s.Security.Flags(env, "/var/lib/contiv/tls"),
		&cli.StringFlag{
			Name: "cluster-secret-file", Category: "security", Destination: &s.secretFile, TakesFile: true, Sources: env.Var("CLUSTER_SECRET_FILE"),
			Usage: "`file` with a secret that all netmasters of the cluster share, at least 32 characters; only needed with several netmasters",
		},
		&cli.StringFlag{
			Name: "join", Category: "security", Destination: &s.joinList, Sources: env.Var("JOIN"),
			Usage: "comma-separated `list` of URLs (https://ip:port) of netmasters, from which this one gets the certificate authority at its first start (default: it creates one; so does the first of the list, if it is this netmaster and no other one has an authority)",
		},
		&cli.StringFlag{
			Name: "join-account", Category: "security", Value: "kube-system/contiv-netplugin", Destination: &s.account, Sources: env.Var("JOIN_ACCOUNT"),
			Usage: "`namespace/name` of the ServiceAccount whose pods may join as the node they run on (mode kubernetes)",
		},
		&cli.StringFlag{
			Name: "ca-configmap", Category: "security", Destination: &s.configMap, Sources: env.Var("CA_CONFIGMAP"),
			Usage: "`namespace/name` of an existing ConfigMap that is to hold the certificate authority, for agents that join (mode kubernetes)",
		},
		&cli.DurationFlag{
			Name: "tls-cert-ttl", Category: "security", Value: pki.DefaultValid, Destination: &s.certTTL, Sources: env.Var("TLS_CERT_TTL"),
			Usage: "how long certificates are valid, at least 10s; they are renewed after two thirds of it",
		},
		&cli.StringFlag{
			Name: "socket", Category: "security", Value: "/run/contiv/netmaster.sock", Destination: &s.socket, Sources: env.Var("SOCKET"),
			Usage: "unix socket `path` on which root on this host has full access without a login; empty for none; used with TLS only",
		},
		&cli.StringFlag{
			Name: "auth-listen", Category: "security", Destination: &s.authListen, Sources: env.Var("AUTH_LISTEN"),
			Usage: "further `host:port` on which the API is served, such as :10000, where clients of the original expect its login proxy; used with TLS only",
		},
	)
}

func (s *securityOptions) validate() error {
	if err := s.Security.Validate(); err != nil {
		return err
	}
	if s.certTTL < 10*time.Second {
		return cliconf.Usagef("--tls-cert-ttl %s is less than 10s", s.certTTL)
	}
	var err error
	if s.join, err = cliconf.SecureURLs("--join", s.joinList); err != nil {
		return err
	}
	if s.configMap != "" {
		if _, _, err := kubeca.ParseName(s.configMap); err != nil {
			return cliconf.Usagef("--ca-configmap %w", err)
		}
	}
	if s.authListen != "" {
		if err := netx.CheckListen(s.authListen); err != nil {
			return cliconf.Usagef("--auth-listen: %w", err)
		}
	}
	if s.secretFile == "" || !s.Mode.TLS() {
		return nil
	}
	s.secret, err = ca.ReadSecret(s.secretFile)
	if err != nil {
		return &cliconf.UsageError{Err: err}
	}
	return nil
}

// security is what tells the clients of this netmaster apart, wired but not running yet.
type security struct {
	opts  *securityOptions
	log   logrus.FieldLogger
	ca    *ca.CA
	auth  *auth.Service
	files pki.Files // of the user's own PKI
	creds *pki.Credentials
	audit *audit.Log // nil: nothing is noted

	store  atomic.Pointer[objdb.Store]
	daemon atomic.Pointer[daemon.Daemon]
}

// newSecurity gets this netmaster its certificate. In mode off there is nothing to get.
func newSecurity(ctx context.Context, o *securityOptions, address string, log logrus.FieldLogger) (*security, error) {
	s := &security{opts: o, log: log}
	if !o.Mode.TLS() {
		return s, nil
	}
	var own *pki.Credentials
	if o.OwnPKI() {
		own = pki.NewCredentials()
		s.files = pki.Files{CA: o.CA, Cert: o.Cert, Key: o.Key}
		if err := s.files.Load(own); err != nil {
			return nil, &cliconf.UsageError{Err: err}
		}
	}
	ips, names := addresses(address)
	var err error
	s.ca, err = ca.Open(ctx, ca.Config{
		Dir: o.Dir, Name: address, IPs: ips, DNSNames: names, CertTTL: o.certTTL, Secret: o.secret, Join: o.join, OwnPKI: own,
		Reviewer: o.reviewer, ServiceAccount: o.account, Mode: string(o.Mode), Plain: s.plain, FinishByHand: o.members, Log: log.WithField("part", "ca"),
	})
	if err != nil {
		return nil, err
	}
	s.creds = s.ca.Credentials()
	if err := s.openAudit(); err != nil {
		return nil, err
	}
	var reviewer auth.Reviewer
	if r, ok := o.reviewer.(accounts); ok {
		reviewer = r.kubernetes
	}
	s.auth, err = auth.New(auth.Config{
		Store: s.openStore, Keys: s.ca.Keys, Reviewer: reviewer, Bootstrap: true, Announce: s.announce, Sealer: s.sealer("auth"), Audit: s.noteLogin, Forget: s.forget,
		Log: log.WithField("part", "auth"), Version: version.Get().Version,
	})
	return s, err
}

// addresses are what the certificate of this netmaster is good for besides its name.
func addresses(internal string) ([]net.IP, []string) {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if host, _, err := net.SplitHostPort(internal); err == nil && net.ParseIP(host) != nil {
		ips = append(ips, net.ParseIP(host))
	}
	return ips, []string{"localhost", "netmaster"}
}

// initialPassword is the file of the first password of admin. It is in no log.
const initialPassword = "initial-admin-password"

func (s *security) announce(user, password string) {
	path := filepath.Join(s.opts.Dir, initialPassword)
	if err := pki.WriteFile(path, []byte(password+"\n")); err != nil {
		s.log.WithError(err).Warn("cannot write the initial password; as root on this host, set one with: netctl user passwd " + user)
		return
	}
	s.log.WithField("user", user).WithField("file", path).Info("wrote the initial password to a file; it goes when the password is changed with netctl user passwd")
}

// forget removes the file of a password that does not count any more.
func (s *security) forget() {
	path := filepath.Join(s.opts.Dir, initialPassword)
	switch err := os.Remove(path); {
	case err == nil:
		s.log.WithField("file", path).Info("removed the file of the initial password, which has been changed")
	case !errors.Is(err, fs.ErrNotExist):
		s.log.WithError(err).Warn("cannot remove the file of the initial password, which has been changed")
	}
}

func (s *security) openStore() objdb.Store {
	if store := s.store.Load(); store != nil {
		return *store
	}
	return nil
}

func (s *security) plain() map[string]time.Time {
	if d := s.daemon.Load(); d != nil {
		return d.Plain()
	}
	return nil
}

// config is what the daemon needs. mode is the cluster mode.
func (s *security) config(mode string) (daemon.Security, error) {
	c := daemon.Security{Mode: s.opts.Mode}
	if !c.Mode.TLS() {
		return c, nil
	}
	rules := authz.New(authz.Config{Swarm: mode == "swarm-mode"})
	c.Credentials, c.Tokens = s.creds, s.auth
	c.Gate, c.Note = s.gate(rules), s.note(rules)
	c.Local = map[string]http.Handler{securityapi.Prefix: s.ca.Handler(), auth.Prefix: s.auth.Handler()}
	if s.opts.socket == "" {
		return c, nil
	}
	var err error
	c.Socket, err = socket.Listen(s.opts.socket)
	if err != nil {
		return c, cliconf.Usagef("--socket %s: %w", s.opts.socket, err)
	}
	return c, nil
}

// dialer connects to agents.
func (s *security) dialer() *tlsport.Dialer {
	return tlsport.NewDialer(s.opts.Mode, s.creds, pki.UnitAgent)
}

// withStore serves what needs the store, until ctx ends.
func (s *security) withStore(ctx context.Context, store objdb.Store) {
	if s.ca == nil {
		return
	}
	s.store.Store(&store)
	s.ca.SetStore(store)
	s.auth.Run(ctx, store)
}

// run keeps certificates fresh until ctx ends.
func (s *security) run(ctx context.Context) error {
	if s.ca == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.ca.Run(ctx) })
	if s.audit != nil {
		g.Go(func() error { s.audit.Run(ctx); return nil })
	}
	if s.opts.OwnPKI() {
		g.Go(func() error { s.files.Follow(ctx, s.creds, s.log); return nil })
	}
	if s.opts.publish != nil {
		g.Go(func() error { s.opts.publish(ctx, s.creds); return nil })
	}
	return g.Wait()
}
