package ca

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// SecretMin is the length of the shortest secret of a cluster, in bytes. It must not be
// possible to guess it from a proof that somebody has recorded.
const SecretMin = 32

// TokenReviewer asks Kubernetes whose a ServiceAccount token is.
type TokenReviewer interface {
	// Review takes tokens for the audience securityapi.Audience. It returns the account, "namespace/name", and the node of the pod that the token is
	// bound to. The error's kind is Invalid if the token does not count, and Unavailable if
	// the API server cannot be asked.
	Review(ctx context.Context, token string) (serviceAccount, node string, err error)
}

// Config is what Open needs.
type Config struct {
	// Dir is the TLS folder.
	Dir string
	// Name is that of this netmaster in its certificate: its address, ip:port.
	Name string
	// IPs and DNSNames are put into its certificate for clients that check them.
	IPs      []net.IP
	DNSNames []string
	// CertTTL is how long certificates are valid; 0 means pki.DefaultValid.
	CertTTL time.Duration
	// Secret is the secret of the cluster, at least SecretMin bytes; empty: no other
	// netmaster can join this one.
	Secret []byte
	// Join are the base URLs (https://ip:port) of netmasters to get the authority from if
	// there is none on disk. Empty: this is the first netmaster, which makes it. The list may
	// name this netmaster, too, so that all of them can have the same: the first one makes the
	// authority unless another one has it.
	Join []string
	// OwnPKI are credentials of the user's own authority; nil: the cluster has its own.
	OwnPKI *pki.Credentials
	// Reviewer, if not nil, lets hosts join by the tokens of the account ServiceAccount
	// ("namespace/name").
	Reviewer       TokenReviewer
	ServiceAccount string
	// Mode is the mode of TLS, for the status.
	Mode string
	// Plain returns who still comes without TLS, for the status; may be nil.
	Plain func() map[string]time.Time
	// Settle is how long a rotation lasts at least after the last host has its new
	// certificate, so that nobody is left out whose answer was lost; 0 means 5 minutes.
	Settle time.Duration
	// FinishByHand leaves it to an administrator to end a rotation. Members of an embedded
	// store read the authorities for outgoing connections when they start only, so each of
	// them has to start again before the former one is dropped.
	FinishByHand bool
	Log          logrus.FieldLogger
}

func (cfg *Config) complete() error {
	if cfg.Dir == "" || cfg.Name == "" {
		return errs.New(errs.Invalid, "certificate authority: expected a folder and the name of this netmaster")
	}
	if len(cfg.Secret) > 0 && len(cfg.Secret) < SecretMin {
		return errs.New(errs.Invalid, "the cluster's secret has %d characters, expected at least %d; make one with: openssl rand -hex 32",
			len(cfg.Secret), SecretMin)
	}
	if others, _ := cfg.others(); len(others) > 0 && len(cfg.Secret) == 0 {
		return errs.New(errs.Invalid, "joining another netmaster needs the cluster's secret; use --cluster-secret-file")
	}
	if cfg.CertTTL == 0 {
		cfg.CertTTL = pki.DefaultValid
	}
	if cfg.Settle == 0 {
		cfg.Settle = 5 * time.Minute
	}
	if cfg.Plain == nil {
		cfg.Plain = func() map[string]time.Time { return nil }
	}
	return nil
}

// others are the netmasters to join, and whether this one comes before them.
func (cfg *Config) others() (urls []string, first bool) {
	self := "https://" + cfg.Name
	others := slices.DeleteFunc(slices.Clone(cfg.Join), func(u string) bool { return u == self })
	return others, len(cfg.Join) > 0 && cfg.Join[0] == self
}

// ReadSecret reads the file of the cluster's secret; blanks around it do not count. The file
// must not be readable by others. The error's kind is Invalid.
func ReadSecret(path string) ([]byte, error) {
	text, err := pki.ReadFile(path)
	if err != nil {
		return nil, errs.New(errs.Invalid, "--cluster-secret-file: %w", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
		return nil, errs.New(errs.Invalid, "--cluster-secret-file %s can be read by everybody; run: chmod 600 %s", path, path)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < SecretMin {
		return nil, errs.New(errs.Invalid, "--cluster-secret-file %s has %d characters, expected at least %d; make one with: openssl rand -hex 32",
			path, len(secret), SecretMin)
	}
	return []byte(secret), nil
}

// How often an address may ask for a certificate: so often that many hosts behind one address
// can join, and so seldom that it costs no netmaster much. Secrets are too long to be guessed;
// it is the work that is bounded.
const (
	askRate  = 20 // a second
	askBurst = 100
)
