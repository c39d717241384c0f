package cliconf

import (
	"cmp"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// Kinds of store.
const (
	StoreEtcd     = "etcd"
	StoreConsul   = "consul"
	StoreEmbedded = "embedded"
)

// Where a store is expected when nobody says where: etcd, or the agent of Consul on
// this host.
const (
	defaultEtcd   = "http://127.0.0.1:2379"
	defaultConsul = "http://127.0.0.1:8500"
)

// Store is the group of options about the cluster store a daemon is a client of.
// After Validate, Kind is set, Endpoints are the URLs to use, TLS is that of the kind,
// and the user and password are separate.
type Store struct {
	Kind   string // etcd | consul | embedded (where allowed)
	Etcd   string // comma list of URLs
	Consul string // comma list of URLs
	User   string // of etcd, name:password, after Validate the name
	Token  string // of consul

	EtcdTLS, ConsulTLS TLS

	Endpoints []string
	TLS
	Password string

	secrets []string // environment variables
}

// TLS names the files a daemon secures its connection to the store with, all PEM. Empty
// is the system's authorities, and no certificate of its own.
type TLS struct{ CA, Cert, Key string }

// flags returns the options for one kind of store.
func (t *TLS) flags(env Env, store string) []cli.Flag {
	upper := strings.ToUpper(store)
	return []cli.Flag{
		&cli.StringFlag{
			Name: store + "-ca", Category: "store", Destination: &t.CA, TakesFile: true,
			Sources: env.Var(upper + "_CA"), Usage: "`file` with the certificate authority of the " + store + " servers (PEM)",
		},
		&cli.StringFlag{
			Name: store + "-cert", Category: "store", Destination: &t.Cert, TakesFile: true,
			Sources: env.Var(upper + "_CERT"), Usage: "`file` with the client certificate for " + store + " (PEM)",
		},
		&cli.StringFlag{
			Name: store + "-key", Category: "store", Destination: &t.Key, TakesFile: true,
			Sources: env.Var(upper + "_KEY"), Usage: "`file` with the private key of --" + store + "-cert (PEM)",
		},
	}
}

func (t *TLS) validate(store string) error {
	if (t.Cert == "") != (t.Key == "") {
		return Usagef("--%s-cert and --%s-key must be set together", store, store)
	}
	return nil
}

// Flags returns the options; parsing fills s.
func (s *Store) Flags(env Env) []cli.Flag {
	s.secrets = []string{string(env) + "ETCD_USER", string(env) + "CONSUL_TOKEN"}
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{
			Name: "etcd-endpoints", Aliases: []string{"etcd"}, Category: "store", Destination: &s.Etcd,
			Sources: env.Var("ETCD_ENDPOINTS"), Usage: "comma-separated `list` of etcd URLs (default " + defaultEtcd + " when no store is given)",
		},
		&cli.StringFlag{
			Name: "etcd-user", Category: "store", Destination: &s.User,
			Sources: env.Var("ETCD_USER"), Usage: "`name:password` for etcd; preferably set in the environment",
		},
		&cli.StringFlag{
			Name: "consul-endpoints", Aliases: []string{"consul"}, Category: "store", Destination: &s.Consul,
			Sources: env.Var("CONSUL_ENDPOINTS"), Usage: "comma-separated `list` of Consul URLs; if one fails, the next is used",
		},
		&cli.StringFlag{
			Name: "consul-token", Category: "store", Destination: &s.Token,
			Sources: env.Var("CONSUL_TOKEN"), Usage: "Consul ACL `token`; preferably set in the environment",
		},
	}, s.EtcdTLS.flags(env, StoreEtcd), s.ConsulTLS.flags(env, StoreConsul))
}

// Validate checks the options and returns a UsageError for the first that is wrong. It takes
// secrets out of the environment, so that no program that the daemon runs inherits them.
func (s *Store) Validate() error {
	for _, name := range s.secrets {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	if s.Etcd != "" && s.Consul != "" {
		return Usagef("ambiguous cluster store db endpoints: both --etcd-endpoints and --consul-endpoints are set")
	}
	if s.Kind == "" {
		s.Kind = StoreEtcd
		if s.Consul != "" {
			s.Kind = StoreConsul
		}
	}
	if err := OneOf("--store", &s.Kind, StoreEmbedded, StoreEtcd, StoreConsul); err != nil {
		return err
	}
	if err := s.credentials(); err != nil {
		return err
	}
	switch {
	case s.Kind != StoreEtcd && s.Etcd != "":
		return Usagef("ambiguous cluster store: --store %s does not go with --etcd-endpoints", s.Kind)
	case s.Kind != StoreConsul && s.Consul != "":
		return Usagef("ambiguous cluster store: --store %s does not go with --consul-endpoints", s.Kind)
	}
	var err error
	switch s.Kind {
	case StoreConsul:
		s.TLS = s.ConsulTLS
		s.Endpoints, err = endpoints("--consul-endpoints", cmp.Or(s.Consul, defaultConsul), StoreConsul, 8500)
	case StoreEtcd:
		s.TLS = s.EtcdTLS
		s.Endpoints, err = endpoints("--etcd-endpoints", cmp.Or(s.Etcd, defaultEtcd), StoreEtcd, 2379)
	}
	return err
}

func (s *Store) credentials() error {
	if err := s.EtcdTLS.validate(StoreEtcd); err != nil {
		return err
	}
	if err := s.ConsulTLS.validate(StoreConsul); err != nil {
		return err
	}
	if s.User == "" {
		return nil
	}
	name, password, ok := strings.Cut(s.User, ":")
	if !ok || name == "" {
		return Usagef("--etcd-user is not name:password") // never print what was given
	}
	s.User, s.Password = name, password
	return nil
}

// endpoints parses a comma list of URLs. Empty members are dropped; synonym is one
// more scheme that means http, port the usual one, for the message.
func endpoints(flag, list, synonym string, port int) ([]string, error) {
	var out []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", synonym}, u.Scheme) {
			return nil, Usagef("%s: %q is not a URL like http://10.0.0.1:%d", flag, text, port)
		}
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
			return nil, Usagef("%s: %q: expected only scheme://host:port", flag, text)
		}
		if u.Scheme == synonym {
			u.Scheme = "http"
		}
		out = append(out, u.Scheme+"://"+u.Host)
	}
	if len(out) == 0 {
		return nil, Usagef("%s: no endpoint, expected at least one", flag)
	}
	return out, nil
}
