package auth

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-ldap/ldap/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// ldapConfig says where LDAP is. The JSON names are those of the original's API; TLS and CA
// are new.
type ldapConfig struct {
	Server             string `json:"server"` // host name or address
	Port               int    `json:"port"`
	BaseDN             string `json:"base_dn"`
	ServiceAccountDN   string `json:"service_account_dn"`
	SealedPassword     string `json:"sealed_password,omitempty"` // of the service account
	StartTLS           bool   `json:"start_tls"`
	TLS                bool   `json:"tls"` // LDAPS: TLS from the start
	InsecureSkipVerify bool   `json:"insecure_skip_verify"`
	TLSCertIssuedTo    string `json:"tls_cert_issued_to"` // name in the certificate; empty: Server
	CA                 string `json:"ca,omitempty"`       // PEM; empty: the system's authorities
}

// ldapEdit is what a request can say of the configuration; nil: nothing.
type ldapEdit struct {
	Server             *string `json:"server"`
	Port               *int    `json:"port"`
	BaseDN             *string `json:"base_dn"`
	ServiceAccountDN   *string `json:"service_account_dn"`
	Password           *string `json:"service_account_password"`
	StartTLS           *bool   `json:"start_tls"`
	TLS                *bool   `json:"tls"`
	InsecureSkipVerify *bool   `json:"insecure_skip_verify"`
	TLSCertIssuedTo    *string `json:"tls_cert_issued_to"`
	CA                 *string `json:"ca"`
}

func (e ldapEdit) apply(c *ldapConfig) {
	set(&c.Server, e.Server)
	set(&c.Port, e.Port)
	set(&c.BaseDN, e.BaseDN)
	set(&c.ServiceAccountDN, e.ServiceAccountDN)
	set(&c.StartTLS, e.StartTLS)
	set(&c.TLS, e.TLS)
	set(&c.InsecureSkipVerify, e.InsecureSkipVerify)
	set(&c.TLSCertIssuedTo, e.TLSCertIssuedTo)
	set(&c.CA, e.CA)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// check returns why a configuration cannot be right. The error's kind is Invalid.
func (c ldapConfig) check() error {
	for field, text := range map[string]string{"server": c.Server, "base_dn": c.BaseDN, "service_account_dn": c.ServiceAccountDN, "tls_cert_issued_to": c.TLSCertIssuedTo} {
		if len(text) > maxPrincipal || strings.ContainsFunc(text, isControl) {
			return errs.New(errs.Invalid, "%s: expected at most %d bytes without control characters", field, maxPrincipal)
		}
	}
	for field, text := range map[string]string{"base_dn": c.BaseDN, "service_account_dn": c.ServiceAccountDN} {
		if dn, err := ldap.ParseDN(text); err != nil || len(dn.RDNs) == 0 {
			return errs.New(errs.Invalid, "%s: expected a DN, such as dc=example,dc=com, got %q", field, text)
		}
	}
	switch {
	case c.Server == "" || strings.ContainsAny(c.Server, "/@ "):
		return errs.New(errs.Invalid, "server: expected a host name or an address, got %q", c.Server)
	case c.Port < 1 || c.Port > 65535:
		return errs.New(errs.Invalid, "port: expected 1 to 65535, got %d", c.Port)
	case c.TLS && c.StartTLS:
		return errs.New(errs.Invalid, "tls and start_tls exclude each other")
	case c.SealedPassword == "":
		return errs.New(errs.Invalid, "service_account_password is required")
	case c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)):
		return errs.New(errs.Invalid, "ca: expected certificates in PEM")
	}
	return nil
}

// view is the configuration without the password.
func (c ldapConfig) view() ldapConfig {
	c.SealedPassword = ""
	return c
}

func (s *Service) putLDAP(r *http.Request, who identity.Identity) (answer, error) {
	return s.changeLDAP(r, who, func(*ldapConfig, bool) error { return nil })
}

func (s *Service) patchLDAP(r *http.Request, who identity.Identity) (answer, error) {
	return s.changeLDAP(r, who, func(_ *ldapConfig, exists bool) error {
		if !exists {
			return refuse(http.StatusNotFound, "LDAP is not configured")
		}
		return nil
	})
}

// changeLDAP is PUT and PATCH of ldap_configuration/. PUT begins with nothing.
func (s *Service) changeLDAP(r *http.Request, who identity.Identity, may func(*ldapConfig, bool) error) (answer, error) {
	var edit ldapEdit
	if err := readBody(r, &edit); err != nil {
		return answer{}, err
	}
	sealed := ""
	if edit.Password != nil {
		var err error
		if sealed, err = s.seal("service_account_password", *edit.Password); err != nil {
			return answer{}, err
		}
	}
	c, err := change(r.Context(), s, ldapKey, func(c *ldapConfig, exists bool) error {
		if err := may(c, exists); err != nil {
			return err
		}
		if r.Method == http.MethodPut {
			*c = ldapConfig{}
		}
		// A password is for the server that it was given for: who may change the address must
		// not learn it by that.
		before := *c
		edit.apply(c)
		if moved := before.Server != c.Server || before.Port != c.Port || before.ServiceAccountDN != c.ServiceAccountDN ||
			(before.TLS || before.StartTLS) && !c.TLS && !c.StartTLS || before.TLSCertIssuedTo != c.TLSCertIssuedTo ||
			before.CA != c.CA || !before.InsecureSkipVerify && c.InsecureSkipVerify; moved && sealed == "" {
			return errs.New(errs.Invalid, "service_account_password is required when the server, its certificate or the account changes")
		}
		set(&c.SealedPassword, nonEmpty(sealed))
		return c.check()
	})
	if err != nil {
		return answer{}, err
	}
	if !c.TLS && !c.StartTLS {
		s.cfg.Log.WithField("server", c.address()).Warn("LDAP is configured without TLS: passwords are sent in clear")
	}
	s.cfg.Log.WithField("server", c.address()).WithField("by", who.String()).Info("configured LDAP")
	return answer{http.StatusOK, c.view()}, nil
}

func nonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// seal encrypts a secret that a request has brought.
func (s *Service) seal(field, secret string) (string, error) {
	switch {
	case s.cfg.Sealer == nil:
		return "", errs.New(errs.Unavailable, "%s: this netmaster has no key to keep secrets with", field)
	case secret == "" || len(secret) > maxPassword:
		return "", errs.New(errs.Invalid, "%s: expected 1 to %d bytes", field, maxPassword)
	}
	sealed, err := s.cfg.Sealer.Seal([]byte(secret))
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return sealed, nil
}

func (s *Service) unseal(what, sealed string) (string, error) {
	if s.cfg.Sealer == nil {
		return "", errs.New(errs.Unavailable, "%s: this netmaster has no key to read it with", what)
	}
	secret, err := s.cfg.Sealer.Open(sealed)
	if err != nil {
		return "", errs.New(errs.Internal, "%s cannot be read, configure it again: %w", what, err)
	}
	return string(secret), nil
}

func (s *Service) getLDAP(*http.Request, identity.Identity) (answer, error) {
	c, ok := s.dir.ldapConfig()
	if !ok {
		return answer{}, refuse(http.StatusNotFound, "LDAP is not configured")
	}
	return answer{http.StatusOK, c.view()}, nil
}

func (s *Service) deleteLDAP(r *http.Request, _ identity.Identity) (answer, error) {
	if err := s.commit(r.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(ldapKey)}}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}
