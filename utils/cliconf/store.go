package cliconf

import (
	"net/url"
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

// defaultEtcd is where etcd is expected when nobody says where.
const defaultEtcd = "http://127.0.0.1:2379"

// Store is the group of options about the cluster store a daemon is a client of.
// After Validate, Kind is set, Endpoints are the URLs to use, and the user and
// password are apart.
type Store struct {
	Kind   string // etcd | consul | embedded (where allowed)
	Etcd   string // comma list of URLs
	Consul string // comma list of URLs
	CA     string // file, PEM
	Cert   string // file, PEM
	Key    string // file, PEM
	User   string // name:password, after Validate the name

	Endpoints []string
	Password  string
}

// Flags returns the options; parsing fills s.
func (s *Store) Flags(env Env) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "etcd-endpoints", Aliases: []string{"etcd"}, Category: "store", Destination: &s.Etcd,
			Sources: env.Var("ETCD_ENDPOINTS"), Usage: "comma `list` of etcd URLs (default " + defaultEtcd + " when no store is given)",
		},
		&cli.StringFlag{
			Name: "consul-endpoints", Aliases: []string{"consul"}, Category: "store", Destination: &s.Consul,
			Sources: env.Var("CONSUL_ENDPOINTS"), Usage: "comma `list` of consul URLs",
		},
		&cli.StringFlag{
			Name: "etcd-ca", Category: "store", Destination: &s.CA, TakesFile: true,
			Sources: env.Var("ETCD_CA"), Usage: "`file` with the certificate authority of the etcd servers (PEM)",
		},
		&cli.StringFlag{
			Name: "etcd-cert", Category: "store", Destination: &s.Cert, TakesFile: true,
			Sources: env.Var("ETCD_CERT"), Usage: "`file` with our certificate for etcd (PEM)",
		},
		&cli.StringFlag{
			Name: "etcd-key", Category: "store", Destination: &s.Key, TakesFile: true,
			Sources: env.Var("ETCD_KEY"), Usage: "`file` with the key of --etcd-cert (PEM)",
		},
		&cli.StringFlag{
			Name: "etcd-user", Category: "store", Destination: &s.User,
			Sources: env.Var("ETCD_USER"), Usage: "`name:password` to log in to etcd with; better given in the environment",
		},
	}
}

// Validate checks the options and returns a UsageError for the first that is wrong.
func (s *Store) Validate() error {
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
	case StoreEmbedded:
		return nil
	case StoreConsul:
		if _, err = endpoints("--consul-endpoints", s.Consul, "consul"); err != nil {
			return err
		}
		return Usagef("--store consul is not supported by this build, expected etcd or embedded")
	}
	if s.Etcd == "" {
		s.Etcd = defaultEtcd
	}
	s.Endpoints, err = endpoints("--etcd-endpoints", s.Etcd, "etcd")
	return err
}

func (s *Store) credentials() error {
	if (s.Cert == "") != (s.Key == "") {
		return Usagef("--etcd-cert and --etcd-key go together, one of them is not set")
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
// more scheme that means http.
func endpoints(flag, list, synonym string) ([]string, error) {
	var out []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", synonym}, u.Scheme) {
			return nil, Usagef("%s: %q is not a URL like http://10.0.0.1:2379", flag, text)
		}
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
			return nil, Usagef("%s: %q is more than scheme://host:port", flag, text)
		}
		if u.Scheme == synonym {
			u.Scheme = "http"
		}
		out = append(out, u.Scheme+"://"+u.Host)
	}
	if len(out) == 0 {
		return nil, Usagef("%s names no endpoint", flag)
	}
	return out, nil
}
