package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of what a provider may take.
const (
	oidcTimeout = 10 * time.Second
	maxSaid     = 1 << 20                                        // bytes of an answer
	maxTalking  = 16                                             // requests to the provider at the same time
	deviceGrant = "urn:ietf:params:oauth:grant-type:device_code" // RFC 8628 §3.4
)

// providers keeps what the provider in use has said of itself, until that fails or the
// configuration changes.
type providers struct {
	talking chan struct{}

	mu     sync.Mutex
	config string
	client *http.Client
	inUse  *oidc.Provider
}

func newProviders() *providers { return &providers{talking: make(chan struct{}, maxTalking)} }

// provider is a provider that can be asked.
type provider struct {
	config oidcConfig
	oauth  oauth2.Config
	oidc   *oidc.Provider
	client *http.Client
}

// with returns a context in which the libraries use the provider's client.
func (p *provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// provider finds the provider that is configured. free must be called when it has been asked.
func (s *Service) provider(ctx context.Context) (p *provider, free func(), err error) {
	c, err := s.oidcConfigured()
	if err != nil {
		return nil, nil, err
	}
	secret := ""
	if c.SealedSecret != "" {
		if secret, err = s.unseal("the client secret of OIDC", c.SealedSecret); err != nil {
			return nil, nil, err
		}
	}
	select {
	case s.oidc.talking <- struct{}{}:
	default:
		return nil, nil, &Error{Code: http.StatusServiceUnavailable, Text: "too many people are logging in by OIDC: try again", Wait: time.Second}
	}
	free = func() { <-s.oidc.talking }
	found, client, err := s.oidc.find(ctx, c)
	if err != nil {
		free()
		return nil, nil, c.unavailable(err)
	}
	p = &provider{config: c, oidc: found, client: client}
	at := found.Endpoint()
	at.AuthStyle = authStyle(found, secret)
	p.oauth = oauth2.Config{ClientID: c.ClientID, ClientSecret: secret, Endpoint: at, RedirectURL: c.RedirectURL, Scopes: append([]string{oidc.ScopeOpenID}, c.Scopes...)}
	return p, free, nil
}

// authStyle says how a provider wants to know the client. To try both would ask twice.
func authStyle(p *oidc.Provider, secret string) oauth2.AuthStyle {
	var said struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"` // without: client_secret_basic
	}
	if err := p.Claims(&said); err != nil || secret != "" && (len(said.Methods) == 0 || slices.Contains(said.Methods, "client_secret_basic")) {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

func (c oidcConfig) unavailable(err error) error {
	return errs.New(errs.Unavailable, "the OIDC provider %s cannot be asked: %w; local users can log in", c.Issuer, err)
}

// find returns the provider, and asks for its description if it is another one.
func (p *providers) find(ctx context.Context, c oidcConfig) (*oidc.Provider, *http.Client, error) {
	wanted := c.Issuer + "\n" + c.CA
	p.mu.Lock()
	found, client, same := p.inUse, p.client, p.config == wanted && p.inUse != nil
	p.mu.Unlock()
	if same {
		return found, client, nil
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if c.CA != "" {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(c.CA))
	}
	client = &http.Client{Transport: bounded{transport}}
	// The provider keeps the context for fetching keys later, so it must not end.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), c.Issuer)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config, p.inUse, p.client = wanted, found, client
	return found, client, nil
}

// bounded limits how long a request takes and how much is read of its answer, and reads that
// at once: not every user of it closes the body.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), oidcTimeout)
	defer cancel()
	resp, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxSaid))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

// startDevice is POST oidc/device/: the beginning of a login on another device (RFC 8628).
func (s *Service) startDevice(r *http.Request, _ identity.Identity) (answer, error) {
	p, free, err := s.provider(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer free()
	if p.oauth.Endpoint.DeviceAuthURL == "" {
		return answer{}, refuse(http.StatusNotImplemented, "the OIDC provider %s has no device flow", p.config.Issuer)
	}
	device, err := p.oauth.DeviceAuth(p.with(r.Context()))
	if err != nil {
		return answer{}, p.config.unavailable(err)
	}
	return answer{http.StatusOK, device}, nil
}

// finishDevice is POST oidc/token/ {"device_code"}: 200 {"token"} once the user has agreed.
// Until then 400 with the error "authorization_pending" or "slow_down" (RFC 8628 §3.5).
func (s *Service) finishDevice(r *http.Request, _ identity.Identity) (answer, error) {
	var ask struct {
		DeviceCode string `json:"device_code"`
	}
	if err := readBody(r, &ask); err != nil {
		return answer{}, err
	}
	if ask.DeviceCode == "" {
		return answer{}, errs.New(errs.Invalid, "device_code is required")
	}
	p, free, err := s.provider(r.Context())
	if err != nil {
		return answer{}, err
	}
	defer free()
	got, err := p.oauth.Exchange(p.with(r.Context()), "", oauth2.SetAuthURLParam("grant_type", deviceGrant), oauth2.SetAuthURLParam("device_code", ask.DeviceCode))
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && (refused.ErrorCode == "authorization_pending" || refused.ErrorCode == "slow_down") {
		return answer{}, refuse(http.StatusBadRequest, "%s", refused.ErrorCode)
	}
	return s.identified(r, p, got, err, "")
}

// identified ends a login by OIDC: it checks what the provider has sent, and issues a token.
func (s *Service) identified(r *http.Request, p *provider, got *oauth2.Token, err error, nonce string) (answer, error) {
	var who person
	if err == nil {
		who, err = s.personOf(r.Context(), p, got, nonce)
	} else {
		err = p.failed(err)
	}
	who.how = byOIDC
	return s.loggedIn(who, who.name, r.RemoteAddr, err)
}

// failed says why the provider has refused a login.
func (p *provider) failed(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.ErrorCode != "" {
		return refuse(http.StatusUnauthorized, "the OIDC provider %s refuses the login: %s", p.config.Issuer, refused.ErrorCode)
	}
	return p.config.unavailable(err)
}

// personOf verifies the ID token and reads who it is about.
func (s *Service) personOf(ctx context.Context, p *provider, got *oauth2.Token, nonce string) (person, error) {
	raw, _ := got.Extra("id_token").(string)
	verifier := p.oidc.VerifierContext(p.with(ctx), &oidc.Config{ClientID: p.config.ClientID, Now: s.cfg.Now})
	token, err := verifier.Verify(p.with(ctx), raw)
	if err != nil {
		return person{}, refuse(http.StatusUnauthorized, "the OIDC provider %s has sent no valid ID token: %v", p.config.Issuer, err)
	}
	if token.Nonce != nonce {
		return person{}, refuse(http.StatusUnauthorized, "the OIDC provider %s has sent the ID token of another login", p.config.Issuer)
	}
	var said map[string]any
	if err := token.Claims(&said); err != nil {
		return person{}, refuse(http.StatusUnauthorized, "the OIDC provider %s has sent an ID token that cannot be read", p.config.Issuer)
	}
	if err := p.askUserInfo(ctx, got, token.Subject, said); err != nil {
		return person{}, err
	}
	name, _ := said[p.config.UsernameClaim].(string)
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, isControl) {
		return person{}, refuse(http.StatusUnauthorized, "the OIDC provider %s has sent no user name in the claim %q", p.config.Issuer, p.config.UsernameClaim)
	}
	return person{name: name, how: byOIDC, principals: groupsOf(said[p.config.GroupsClaim])}, nil
}

// askUserInfo adds what the ID token does not say of name and groups, and the provider says at
// its UserInfo endpoint (OpenID Connect Core §5.3).
func (p *provider) askUserInfo(ctx context.Context, got *oauth2.Token, subject string, said map[string]any) error {
	if said[p.config.UsernameClaim] != nil && said[p.config.GroupsClaim] != nil || p.oidc.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := p.oidc.UserInfo(p.with(ctx), oauth2.StaticTokenSource(got))
	if err != nil {
		return p.config.unavailable(err)
	}
	var more map[string]any
	if err := info.Claims(&more); err != nil || info.Subject != subject {
		return refuse(http.StatusUnauthorized, "the OIDC provider %s has sent the user info of somebody else", p.config.Issuer)
	}
	for _, claim := range []string{p.config.UsernameClaim, p.config.GroupsClaim} {
		if said[claim] == nil {
			said[claim] = more[claim]
		}
	}
	return nil
}

// groupsOf reads the claim with the groups: a list of names, or one name.
func groupsOf(claim any) []string {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	var principals []string
	for _, g := range list {
		if name, _ := g.(string); name != "" && len(name) <= maxPrincipal && len(principals) < maxGroups {
			principals = append(principals, oidcPrincipal(name))
		}
	}
	return principals
}
