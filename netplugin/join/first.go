package join

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

const callTimeout = 10 * time.Second

// errRejected: the other end does not accept our certificate.
var errRejected = errors.New("netmaster rejects the certificate of this host, which is revoked or has expired; " + advice)

// join gets a first certificate, by what there is: a join token, a ServiceAccount token, or
// the socket of a netmaster.
func (m *Member) join(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.request(); err != nil {
		return err
	}
	joinToken, err := readLine(m.cfg.TokenFile)
	if err != nil {
		return err
	}
	account, err := readLine(m.cfg.AccountFile)
	if err != nil {
		return err
	}
	req := securityapi.JoinRequest{Host: m.cfg.Host, CSR: string(m.csr)}
	switch {
	case joinToken != "":
		tok, err := parseToken(joinToken)
		if err != nil {
			return err
		}
		req.ID, req.Secret = tok.id, tok.secret
		return m.joinRemote(ctx, req, tok.hash)
	case account != "":
		req.ServiceAccount = account
		return m.joinRemote(ctx, req, "")
	}
	return m.joinLocal(ctx, req)
}

// joinLocal asks the netmaster of this host, by its unix socket.
func (m *Member) joinLocal(ctx context.Context, req securityapi.JoinRequest) error {
	if m.cfg.Socket == "" {
		return errs.New(errs.Invalid, "this host has no certificate and no join token; %s", advice)
	}
	client := &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", m.cfg.Socket)
		}},
		CheckRedirect: securityapi.NoRedirect, Timeout: callTimeout,
	}
	defer client.CloseIdleConnections()
	var answer securityapi.Certificate
	if _, err := securityapi.Call(ctx, client, http.MethodPost, "http://netmaster"+securityapi.PathJoin, req, &answer); err != nil {
		return errs.New(errs.KindOf(err), "this host has no join token, and netmaster on this host (%s): %w; on other hosts %s", m.cfg.Socket, err, advice)
	}
	return m.take(answer)
}

func (m *Member) joinRemote(ctx context.Context, req securityapi.JoinRequest, hash string) error {
	return m.eachMaster(func(base string) error {
		trusted, err := m.trust(ctx, base, hash)
		if err != nil {
			return err
		}
		client := m.newClient(trusted)
		defer client.CloseIdleConnections()
		var answer securityapi.Certificate
		if _, err := securityapi.Call(ctx, client, http.MethodPost, base+securityapi.PathJoin, req, &answer); err != nil {
			return explainTLS(err)
		}
		return m.take(answer)
	})
}

// trust returns credentials that believe the authority of a netmaster, and none but that one
// which the hash pins.
func (m *Member) trust(ctx context.Context, base, hash string) (*pki.Credentials, error) {
	trusted := pki.NewCredentials()
	if hash == "" && m.cfg.AuthorityFile != "" {
		text, err := pki.ReadFile(m.cfg.AuthorityFile)
		if err != nil {
			return nil, err
		}
		return trusted, trusted.SetRoots(text)
	}
	// Nothing is believed yet, and nothing is sent that is secret.
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}},
		CheckRedirect: securityapi.NoRedirect, Timeout: callTimeout,
	}
	defer client.CloseIdleConnections()
	var answer securityapi.Roots
	resp, err := securityapi.Call(ctx, client, http.MethodGet, base+securityapi.PathRoots, nil, &answer)
	if resp != nil {
		m.clock.compare(base, resp.Header)
	}
	if err != nil {
		return nil, explainTLS(err)
	}
	roots, err := pki.ParseCertificates([]byte(answer.Roots))
	if err != nil {
		return nil, err
	}
	if hash == "" {
		m.log.WithField("netmaster", base).WithField("hash", answer.Active).
			Warn("no certificate authority is given, believing the first answer of netmaster")
	} else if roots, err = pinned(roots, hash); err != nil {
		return nil, err
	}
	if err := trusted.SetRoots(pki.EncodeCertificates(roots...)); err != nil {
		return nil, err
	}
	if resp.TLS == nil {
		return nil, errs.New(errs.Invalid, "expected an https:// URL")
	}
	_, err = trusted.Verify(resp.TLS.PeerCertificates, pki.UnitMaster)
	return trusted, err
}

// pinned returns the authority of a hash.
func pinned(roots []*x509.Certificate, hash string) ([]*x509.Certificate, error) {
	var found []string
	for _, r := range roots {
		if pki.KeyHash(r) == hash {
			return []*x509.Certificate{r}, nil
		}
		found = append(found, pki.KeyHash(r))
	}
	return nil, errs.New(errs.Invalid, "the certificate authority is not the one of the join token: expected %s, found %s; "+
		"the token is of another cluster, or of an authority that has been replaced, or somebody stands between this host and netmaster",
		hash, strings.Join(found, ", "))
}

// newClient returns a client that talks to netmasters only.
func (m *Member) newClient(creds *pki.Credentials) *http.Client {
	return &http.Client{
		// Each request proves what counts by then.
		Transport:     &http.Transport{TLSClientConfig: pki.ClientConfig(creds, pki.UnitMaster), DisableKeepAlives: true},
		CheckRedirect: securityapi.NoRedirect, Timeout: callTimeout,
	}
}

// explainTLS puts an alert of the other end into words.
func explainTLS(err error) error {
	var alert tls.AlertError
	var op *net.OpError
	if errors.As(err, &alert) || errors.As(err, &op) && op.Op == "remote error" {
		return errs.New(errs.Invalid, "%w (%w)", errRejected, err)
	}
	return err
}
