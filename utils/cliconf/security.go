package cliconf

import (
	"net/url"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/utils/tlsport"
)

// Security is the group of options about TLS. After Validate, Mode is set.
type Security struct {
	Mode tlsport.Mode
	Dir  string // of the daemon's certificate
	TLS         // an own PKI instead of the cluster's authority

	mode string
}

// Flags returns the options; parsing fills s. dir is where the daemon keeps its certificate
// by default.
func (s *Security) Flags(env Env, dir string) []cli.Flag {
	flag := func(name, variable, usage string, to *string) cli.Flag {
		return &cli.StringFlag{Name: name, Category: "security", Destination: to, TakesFile: true, Sources: env.Var(variable), Usage: usage}
	}
	return []cli.Flag{
		&cli.StringFlag{
			Name: "tls", Category: "security", Value: string(tlsport.Off), Destination: &s.mode, Sources: env.Var("TLS"),
			Usage: "off, accept (plain connections and TLS) or require (TLS only)",
		},
		&cli.StringFlag{
			Name: "tls-dir", Category: "security", Value: dir, Destination: &s.Dir, Sources: env.Var("TLS_DIR"),
			Usage: "`directory` of this daemon's certificate and private key",
		},
		flag("tls-ca", "TLS_CA", "`file` with the certificate authorities of an own PKI, used instead of the cluster's (PEM)", &s.CA),
		flag("tls-cert", "TLS_CERT", "`file` with this daemon's certificate of that PKI (PEM)", &s.Cert),
		flag("tls-key", "TLS_KEY", "`file` with the private key of --tls-cert (PEM)", &s.Key),
	}
}

// Validate checks the options and returns a UsageError for the first that is wrong.
func (s *Security) Validate() error {
	mode, err := tlsport.ParseMode(s.mode)
	if err != nil {
		return Usagef("--tls: %w", err)
	}
	s.Mode = mode
	if (s.CA == "") != (s.Cert == "") || (s.Cert == "") != (s.Key == "") {
		return Usagef("--tls-ca, --tls-cert and --tls-key must be set together")
	}
	return nil
}

// SecureURLs reads the comma list of https URLs that an option names netmasters by. A UsageError
// names the first that is wrong.
func SecureURLs(flag, list string) (urls []string, err error) {
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" {
			return nil, Usagef("%s %q: expected https://host:port", flag, text)
		}
		urls = append(urls, strings.TrimRight(text, "/"))
	}
	return urls, nil
}

// OwnPKI reports whether certificates come from elsewhere.
func (s *Security) OwnPKI() bool { return s.CA != "" }
