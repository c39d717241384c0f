package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netplugin/inspect"
	"github.com/contiv/netplugin/netplugin/join"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/httpguard"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// securityOptions are the options about the certificate of this host.
type securityOptions struct {
	cliconf.Security
	masterList             string
	tokenFile, accountFile string
	authorityFile, socket  string

	masters []string
}

func (s *securityOptions) flags() []cli.Flag {
	flag := func(name, variable, usage string, value string, to *string) cli.Flag {
		return &cli.StringFlag{Name: name, Category: "security", Value: value, Destination: to, TakesFile: true, Sources: env.Var(variable), Usage: usage}
	}
	return append(
		s.Security.Flags(env, "/var/lib/contiv/tls-agent"),
		&cli.StringFlag{
			Name: "netmaster", Category: "security", Destination: &s.masterList, Sources: env.Var("NETMASTER"),
			Usage: "comma-separated `list` of URLs (https://host:port) of netmasters, for this host's certificate (default: the hosts of the store's endpoints, port 9999)",
		},
		flag("join-token-file", "JOIN_TOKEN_FILE", "`file` with a join token, from netctl host token create; not needed on the host of a netmaster", "/etc/contiv/join-token", &s.tokenFile),
		flag("join-account-file", "JOIN_ACCOUNT_FILE", "`file` with a Kubernetes ServiceAccount token for the audience contiv, instead of a join token", "", &s.accountFile),
		flag("join-ca-file", "JOIN_CA_FILE", "`file` with the cluster's certificate authority (PEM), to check netmaster with when joining by a ServiceAccount token", "", &s.authorityFile),
		flag("netmaster-socket", "NETMASTER_SOCKET", "unix socket `path` of a netmaster on this host, which needs no join token", "/run/contiv/netmaster.sock", &s.socket),
	)
}

// validate checks the options; store has been validated.
func (s *securityOptions) validate(store *cliconf.Store) error {
	if err := s.Security.Validate(); err != nil {
		return err
	}
	var err error
	s.masters, err = cliconf.SecureURLs("--netmaster", s.masterList)
	if err != nil || len(s.masters) > 0 {
		return err
	}
	// With the embedded store netmaster is where the store is.
	for _, endpoint := range store.Endpoints {
		if u, err := url.Parse(endpoint); err == nil && u.Hostname() != "" {
			if master := "https://" + net.JoinHostPort(u.Hostname(), "9999"); !slices.Contains(s.masters, master) {
				s.masters = append(s.masters, master)
			}
		}
	}
	return nil
}

// member is this host as the cluster knows it.
type member struct {
	creds *pki.Credentials // nil in mode off
	run   func(context.Context) error
}

// join gets this host its certificate: from its disk, or from netmaster, however long that
// takes. Containers that run already keep their network meanwhile. rest is the address of the
// REST API, which tells what is waited for.
func (s *securityOptions) join(ctx context.Context, host, rest string, log logrus.FieldLogger) (member, error) {
	idle := func(context.Context) error { return nil }
	if !s.Mode.TLS() {
		return member{run: idle}, nil
	}
	log = log.WithField("part", "certificate")
	if s.OwnPKI() {
		files, creds := pki.Files{CA: s.CA, Cert: s.Cert, Key: s.Key}, pki.NewCredentials()
		if err := files.Load(creds); err != nil {
			return member{}, &cliconf.UsageError{Err: err}
		}
		return member{creds: creds, run: func(ctx context.Context) error { files.Follow(ctx, creds, log); return nil }}, nil
	}
	var m *join.Member
	w := &waiting{}
	err := w.during(ctx, host, rest, s.Mode, func(ctx context.Context) (err error) {
		m, err = join.Join(ctx, join.Config{
			Dir: s.Dir, Host: host, Masters: func() []string { return s.masters }, TokenFile: s.tokenFile, AccountFile: s.accountFile,
			AuthorityFile: s.authorityFile, Socket: s.socket, Waiting: w.note, Log: log,
		})
		return err
	})
	if err != nil {
		return member{}, err
	}
	return member{creds: m.Credentials(), run: m.Run}, nil
}

// secured returns what puts a listener of this host behind TLS; nil in mode off.
func (d *daemon) secured(policy pki.ClientPolicy, units ...pki.Unit) func(net.Listener) net.Listener {
	mode := d.o.secure.Mode
	if !mode.TLS() {
		return nil
	}
	return func(l net.Listener) net.Listener {
		return tlsport.Listen(l, tlsport.NewConfig(mode, d.creds, d.log, policy, units...))
	}
}

// guarded keeps the REST API to who may use it, where clients are known by certificates, and from
// pages of other sites.
func (d *daemon) guarded(h http.Handler) http.Handler {
	mode := d.o.secure.Mode
	if !mode.TLS() {
		return h
	}
	h = notFromPages(d.o.host, h)
	if mode != tlsport.Require {
		return h
	}
	return inspect.Guard(d.o.host, h)
}

// notFromPages refuses changes that a browser makes for another site's page. No page has a
// certificate of the cluster.
func notFromPages(host string, next http.Handler) http.Handler {
	guard := httpguard.Guard(httpguard.Config{Hosts: []string{host}}, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
		if known || r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		guard.ServeHTTP(w, r)
	})
}

// dial returns what connects to netmasters.
func (d *daemon) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := tlsport.NewDialer(d.o.secure.Mode, d.creds, pki.UnitMaster)
	dialer.Timeout, dialer.KeepAlive = 2*time.Second, 10*time.Second
	return dialer.DialContext
}
