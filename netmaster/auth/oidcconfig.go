package auth

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// oidcPrefix begins the principals of groups of the OIDC provider.
const oidcPrefix = "oidc:"

// oidcConfig says which OpenID Connect provider users come from.
type oidcConfig struct {
	Issuer        string   `json:"issuer"` // https URL, where /.well-known/openid-configuration is
	ClientID      string   `json:"client_id"`
	SealedSecret  string   `json:"sealed_secret,omitempty"` // empty: a public client
	RedirectURL   string   `json:"redirect_url,omitempty"`  // https://…/api/v1/auth_proxy/oidc/callback/, for browsers
	Scopes        []string `json:"scopes,omitempty"`        // besides openid
	UsernameClaim string   `json:"username_claim"`          // default preferred_username
	GroupsClaim   string   `json:"groups_claim"`            // default groups
	CA            string   `json:"ca,omitempty"`            // PEM; empty: the system's authorities
}

// check returns why a configuration cannot be right. The error's kind is Invalid.
func (c oidcConfig) check() error {
	for field, text := range map[string]string{"issuer": c.Issuer, "redirect_url": c.RedirectURL} {
		u, err := url.Parse(text)
		if text == "" && field == "redirect_url" {
			continue
		}
		if err != nil || u.Scheme != "https" || u.Host == "" || len(text) > maxPrincipal {
			return errs.New(errs.Invalid, "%s: expected a URL that begins with https://, got %q", field, text)
		}
	}
	for field, text := range map[string]string{"client_id": c.ClientID, "username_claim": c.UsernameClaim, "groups_claim": c.GroupsClaim} {
		if text == "" || len(text) > maxText || strings.ContainsFunc(text, isControl) {
			return errs.New(errs.Invalid, "%s: expected 1 to %d bytes without control characters", field, maxText)
		}
	}
	if len(c.Scopes) > 16 || slices.ContainsFunc(c.Scopes, func(s string) bool {
		return s == "" || len(s) > maxText || strings.ContainsFunc(s, func(r rune) bool { return isControl(r) || r == ' ' })
	}) {
		return errs.New(errs.Invalid, "scopes: expected at most 16 names")
	}
	if c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)) {
		return errs.New(errs.Invalid, "ca: expected certificates in PEM")
	}
	return nil
}

func (c oidcConfig) view() oidcConfig {
	c.SealedSecret = ""
	return c
}

// putOIDC is PUT oidc_configuration/.
func (s *Service) putOIDC(r *http.Request, who identity.Identity) (answer, error) {
	var ask struct {
		oidcConfig
		ClientSecret string `json:"client_secret"`
	}
	if err := readBody(r, &ask); err != nil {
		return answer{}, err
	}
	c := ask.oidcConfig
	c.SealedSecret = ""
	if c.UsernameClaim == "" {
		c.UsernameClaim = "preferred_username"
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	if err := c.check(); err != nil {
		return answer{}, err
	}
	if ask.ClientSecret != "" {
		var err error
		if c.SealedSecret, err = s.seal("client_secret", ask.ClientSecret); err != nil {
			return answer{}, err
		}
	}
	if _, err := change(r.Context(), s, oidcKey, func(old *oidcConfig, _ bool) error {
		*old = c
		return nil
	}); err != nil {
		return answer{}, err
	}
	s.cfg.Log.WithField("issuer", c.Issuer).WithField("by", who.String()).Info("configured OIDC")
	return answer{http.StatusOK, c.view()}, nil
}

func (s *Service) getOIDC(*http.Request, identity.Identity) (answer, error) {
	c, err := s.oidcConfigured()
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, c.view()}, nil
}

func (s *Service) deleteOIDC(r *http.Request, _ identity.Identity) (answer, error) {
	if err := s.commit(r.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(oidcKey)}}); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func (s *Service) oidcConfigured() (oidcConfig, error) {
	c, ok := s.dir.oidcConfig()
	if !ok {
		return c, refuse(http.StatusNotFound, "OIDC is not configured")
	}
	return c, nil
}

// oidcPrincipal names a group of the provider. ';' joins principals.
func oidcPrincipal(group string) string {
	return oidcPrefix + strings.ReplaceAll(group, ";", "%3b")
}
