package ca_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var anonymous = identity.Identity{Kind: identity.Anonymous}

// newStore returns a store that is closed at the end of the test.
func newStore(t *testing.T) *memory.Store {
	s := memory.New()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start runs the first netmaster of a cluster.
func start(t *testing.T, cfg ca.Config) *catest.Master {
	t.Helper()
	return catest.Start(t, catest.Port(t), cfg, newStore(t))
}

// newToken makes a join token, and returns its id and its secret.
func newToken(t *testing.T, m *catest.Master, req securityapi.TokenRequest) (id, secret string) {
	t.Helper()
	var tok securityapi.Token
	m.Root(http.MethodPost, securityapi.PathTokens, req, &tok)
	parts := strings.Split(tok.Token, ".")
	if len(parts) != 4 || parts[0] != "CONTIV1" || parts[1] != m.CA.Hash() || parts[2] != tok.ID {
		t.Fatalf("join token %q: expected CONTIV1.%s.%s.SECRET", tok.Token, m.CA.Hash(), tok.ID)
	}
	return parts[2], parts[3]
}

// request returns a certificate request and its key.
func request(t *testing.T) (csr string, key []byte) {
	t.Helper()
	text, key, err := pki.NewRequest("")
	if err != nil {
		t.Fatal(err)
	}
	return string(text), key
}

// join asks for a certificate by a token, and returns the status and the answer's text.
func join(t *testing.T, m *catest.Master, id, secret, host string) (int, string) {
	t.Helper()
	csr, _ := request(t)
	return m.As(anonymous, http.MethodPost, securityapi.PathJoin, securityapi.JoinRequest{ID: id, Secret: secret, Host: host, CSR: csr}, nil)
}

// member lets a host join, and returns its credentials.
func member(t *testing.T, m *catest.Master, host string) *pki.Credentials {
	t.Helper()
	id, secret := newToken(t, m, securityapi.TokenRequest{Host: host})
	csr, key := request(t)
	var cert securityapi.Certificate
	code, text := m.As(anonymous, http.MethodPost, securityapi.PathJoin, securityapi.JoinRequest{ID: id, Secret: secret, Host: host, CSR: csr}, &cert)
	if code != http.StatusOK {
		t.Fatalf("join %s: %d %s", host, code, text)
	}
	return use(t, cert, key)
}

func use(t *testing.T, cert securityapi.Certificate, key []byte) *pki.Credentials {
	t.Helper()
	c := pki.NewCredentials()
	if err := (pki.Stored{Cert: []byte(cert.Certificate), Key: key, Roots: []byte(cert.Roots)}).Use(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// client returns a client that shows a certificate, and keeps no connection.
func client(t *testing.T, c *pki.Credentials) *http.Client {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: pki.ClientConfig(c, pki.UnitMaster), DisableKeepAlives: true}}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// removeAll removes what is below a prefix.
func removeAll(t *testing.T, store objdb.Store, prefix string) {
	t.Helper()
	if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.DeletePrefix(prefix)}}); err != nil {
		t.Fatal(err)
	}
}

// get asks for a page and forgets it.
func get(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// listenAt listens at an address that has just been left.
func listenAt(t *testing.T, addr string) (l net.Listener) {
	t.Helper()
	eventually.Succeeds(t, "listen at "+addr, func() (err error) {
		l, err = net.Listen("tcp", addr)
		return err
	})
	return l
}
