package ca

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx"
)

// call answers a request with a JSON value, or the error's text.
type call func(*http.Request) (any, error)

// Handler serves the paths below securityapi.Prefix. It decides by the identity in the
// request's context, and, for netmasters that join, by the connection's TLS.
func (c *CA) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h call) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, securityapi.MaxBody)
			v, err := h(r)
			c.answer(w, r, v, err)
		})
	}
	handle("GET "+securityapi.PathRoots, c.roots)
	handle("POST "+securityapi.PathJoin, c.limited(c.join))
	handle("POST "+securityapi.PathRenew, c.limited(c.renew))
	handle("POST "+securityapi.PathMasterJoin, c.limited(c.serveMasterJoin))
	handle("GET "+securityapi.PathMasterKeys, c.serveBundle)
	handle("GET "+securityapi.PathStatus, admin(c.status))
	handle("GET "+securityapi.PathTokens, admin(func(r *http.Request) (any, error) { return c.tokens(r.Context()) }))
	handle("POST "+securityapi.PathTokens, admin(c.serveCreateToken))
	handle("DELETE "+securityapi.PathTokens+"/{id}", admin(func(r *http.Request) (any, error) {
		return struct{}{}, c.removeToken(r.Context(), r.PathValue("id"))
	}))
	handle("GET "+securityapi.PathHosts, admin(func(r *http.Request) (any, error) { return c.hosts(r.Context()) }))
	handle("DELETE "+securityapi.PathHosts+"/{name}", admin(func(r *http.Request) (any, error) {
		return struct{}{}, c.revoke(r.Context(), r.PathValue("name"))
	}))
	handle("POST "+securityapi.PathRotate, admin(c.serveRotate))
	handle("POST "+securityapi.PathIssue, admin(c.issue))
	handle("/", func(r *http.Request) (any, error) {
		return nil, refuse(notFound, "%s %s is unknown", r.Method, r.URL.Path)
	})
	return mux
}

func admin(next call) call {
	return func(r *http.Request) (any, error) {
		id := identity.From(r.Context())
		if !id.IsAdmin() {
			return nil, refuse(forbidden, "%s is not an administrator", id)
		}
		return next(r)
	}
}

// limited bounds how often one address asks.
func (c *CA) limited(next call) call {
	return func(r *http.Request) (any, error) {
		if !c.limit.Allow(netx.HostOf(r.RemoteAddr)) {
			return nil, refuse(http.StatusTooManyRequests, "too many requests from this address, try again in a few seconds")
		}
		return next(r)
	}
}

func (c *CA) roots(*http.Request) (any, error) {
	b := c.current()
	if b.authority == nil {
		return nil, refuse(notFound, "this cluster has its own certificates (--tls-ca)")
	}
	return securityapi.Roots{Active: b.hash(), Roots: string(b.roots())}, nil
}

func (c *CA) serveCreateToken(r *http.Request) (any, error) {
	var req securityapi.TokenRequest
	if err := readBody(r, &req); err != nil {
		return nil, err
	}
	t, err := c.createToken(r.Context(), req)
	if err == nil {
		c.log.WithField("token", t.ID).WithField("user", identity.From(r.Context()).String()).Info("join token made")
	}
	return t, err
}

func (c *CA) status(r *http.Request) (any, error) {
	hosts, err := c.hosts(r.Context())
	if err != nil {
		return nil, err
	}
	return securityapi.Status{Mode: c.cfg.Mode, Authority: c.describe(hosts), Hosts: hosts, Plain: c.cfg.Plain()}, nil
}

// readBody reads a JSON value, and nothing but that. The error's kind is Invalid.
func readBody(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("something follows the value")
	}
	return errs.New(errs.Invalid, "request body: expected a JSON object: %w", err)
}
