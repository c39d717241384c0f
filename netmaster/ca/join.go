package ca

import (
	"context"
	"net/http"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// join gives a host its first certificate.
func (c *CA) join(r *http.Request) (any, error) {
	var req securityapi.JoinRequest
	if err := readBody(r, &req); err != nil {
		return nil, err
	}
	if c.cfg.OwnPKI != nil {
		return nil, refuse(notFound, "this cluster has its own certificates (--tls-ca): make one for %.80q there", req.Host)
	}
	if err := checkName(req.Host); err != nil {
		return nil, err
	}
	csr, err := pki.ParseRequest([]byte(req.CSR))
	if err != nil {
		return nil, errs.New(errs.Invalid, "csr: %w", err)
	}
	want := certRequest{name: req.Host, unit: pki.UnitAgent, csr: []byte(req.CSR), ttl: c.cfg.CertTTL}
	switch {
	case req.ID != "":
		return c.joinByToken(r.Context(), req, want, pki.RequestHash(csr))
	case req.ServiceAccount != "":
		return c.joinByAccount(r.Context(), req, want)
	case identity.From(r.Context()).Kind == identity.Root:
		return c.joinTrusted(r.Context(), want, "socket")
	}
	return nil, refuse(unauthorized, "expected a join token; make one with: netctl host token create")
}

func (c *CA) joinByToken(ctx context.Context, req securityapi.JoinRequest, want certRequest, key string) (any, error) {
	store, err := c.openStore()
	if err != nil {
		return nil, err
	}
	tok, err := checkToken(ctx, store, req)
	if err != nil {
		return nil, err
	}
	want.unit, want.joined = tok.value.Unit, tok.value.joined(tok.kv.Key)
	want.allowed = func(ctx context.Context, store objdb.Store, host storedRecord[hostRecord]) (objdb.Txn, error) {
		tok, err := checkToken(ctx, store, req) // as it is by now
		if err != nil {
			return objdb.Txn{}, err
		}
		return useToken(tok, host, tokenUse{Host: req.Host, Key: key})
	}
	cert, err := c.certify(ctx, want)
	if err == nil {
		c.log.WithField("host", req.Host).WithField("token", req.ID).Info("host joined")
	}
	return cert, err
}

func (c *CA) joinByAccount(ctx context.Context, req securityapi.JoinRequest, want certRequest) (any, error) {
	if c.cfg.Reviewer == nil {
		return nil, refuse(unauthorized, "this netmaster does not run in Kubernetes: expected a join token; make one with: netctl host token create")
	}
	account, node, err := c.cfg.Reviewer.Review(ctx, req.ServiceAccount)
	if errs.Is(err, errs.Invalid) {
		return nil, refuse(unauthorized, "the ServiceAccount token does not count: %s", err)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case account != c.cfg.ServiceAccount:
		return nil, refuse(forbidden, "ServiceAccount %s cannot join hosts, expected %s", account, c.cfg.ServiceAccount)
	case node == "":
		return nil, refuse(forbidden, "the token of ServiceAccount %s is not bound to a pod on a node; use a projected token", account)
	case node != req.Host:
		return nil, refuse(forbidden, "the ServiceAccount token is for node %s, not for host %s", node, req.Host)
	}
	return c.joinTrusted(ctx, want, "kubernetes")
}

// joinTrusted gives a certificate to who needs no join token, unless the host is revoked.
func (c *CA) joinTrusted(ctx context.Context, want certRequest, how string) (any, error) {
	want.joined = how
	want.allowed = notRevoked(want.name)
	cert, err := c.certify(ctx, want)
	if err == nil {
		c.log.WithField("host", want.name).WithField("by", how).Info("host joined")
	}
	return cert, err
}

func notRevoked(name string) func(context.Context, objdb.Store, storedRecord[hostRecord]) (objdb.Txn, error) {
	return func(_ context.Context, _ objdb.Store, host storedRecord[hostRecord]) (objdb.Txn, error) {
		if host.value.Revoked {
			return objdb.Txn{}, refuse(forbidden, "host %s has been revoked; to let it join again run: netctl host token create --host %s", name, name)
		}
		return objdb.Txn{}, nil
	}
}

// renew gives a host its next certificate.
func (c *CA) renew(r *http.Request) (any, error) {
	id := identity.From(r.Context())
	unit, ok := map[identity.Kind]pki.Unit{identity.Host: pki.UnitAgent, identity.Monitor: pki.UnitMonitor}[id.Kind]
	if !ok {
		return nil, refuse(forbidden, "expected the certificate of a host, found %s", id)
	}
	var req securityapi.RenewRequest
	if err := readBody(r, &req); err != nil {
		return nil, err
	}
	return c.certify(r.Context(), certRequest{
		name: id.Name, unit: unit, csr: []byte(req.CSR), ttl: c.cfg.CertTTL,
		allowed: func(ctx context.Context, store objdb.Store, host storedRecord[hostRecord]) (objdb.Txn, error) {
			// The store knows of a revocation before this netmaster does.
			if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && !pki.IssuedAt(r.TLS.PeerCertificates[0]).After(host.value.RevokedUntil) {
				host.value.Revoked = true
			}
			return notRevoked(id.Name)(ctx, store, host)
		},
	})
}

// issue makes a certificate for an administrator, who hands it to a program.
func (c *CA) issue(r *http.Request) (any, error) {
	var req securityapi.IssueRequest
	if err := readBody(r, &req); err != nil {
		return nil, err
	}
	want := certRequest{name: req.Name, unit: pki.Unit(req.Unit), csr: []byte(req.CSR), ttl: c.cfg.CertTTL, joined: "ca issue"}
	if want.unit != pki.UnitAgent && want.unit != pki.UnitMonitor {
		return nil, errs.New(errs.Invalid, "unit %.40q: expected agent or monitor", req.Unit)
	}
	if req.TTL != "" {
		var err error
		if want.ttl, err = time.ParseDuration(req.TTL); err != nil || want.ttl <= 0 || want.ttl > maxTokenTTL {
			return nil, errs.New(errs.Invalid, "ttl %.40q: expected a duration such as 720h, at most %s", req.TTL, maxTokenTTL)
		}
	}
	want.allowed = func(context.Context, objdb.Store, storedRecord[hostRecord]) (objdb.Txn, error) {
		return objdb.Txn{}, nil
	}
	cert, err := c.certify(r.Context(), want)
	if err != nil {
		return nil, err
	}
	c.log.WithField("host", req.Name).WithField("unit", req.Unit).WithField("user", identity.From(r.Context()).String()).Info("certificate issued")
	return cert, nil
}
