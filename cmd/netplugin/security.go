package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netplugin/inspect"
	"github.com/contiv/netplugin/netplugin/join"
	"github.com/contiv/netplugin/utils/cliconf"
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
	for text := range strings.SplitSeq(s.masterList, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" {
			return cliconf.Usagef("--netmaster %q: expected https://host:port", text)
		}
		s.masters = append(s.masters, strings.TrimRight(text, "/"))
	}
	if len(s.masters) > 0 {
		return nil
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
	if mode == tlsport.Accept {
		policy = pki.CertificateOptional
	}
	return func(l net.Listener) net.Listener {
		return tlsport.Listen(l, tlsport.Config{
			Mode: mode, TLS: pki.ServerConfig(d.creds, policy, units...), Credentials: d.creds,
			Refused: func(from net.Addr, why error) {
				d.log.WithError(why).WithField("client", from.String()).Debug("connection refused")
			},
		})
	}
}

// guarded keeps the REST API to who may use it, where clients are known by certificates.
func (d *daemon) guarded(h http.Handler) http.Handler {
	if d.o.secure.Mode != tlsport.Require {
		return h
	}
	return inspect.Guard(d.o.host, h)
}

// dial returns what connects to netmasters.
func (d *daemon) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &tlsport.Dialer{Mode: d.o.secure.Mode, Timeout: 2 * time.Second, KeepAlive: 10 * time.Second}
	if dialer.Mode.TLS() {
		dialer.TLS = pki.ClientConfig(d.creds, pki.UnitMaster)
	}
	return dialer.DialContext
}
