package ca_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/pki"
)

// TestRateLimit: one address that asks without end is told to wait; others are not.
func TestRateLimit(t *testing.T) {
	m := start(t, ca.Config{})
	limited := 0
	for range 200 {
		if code, _ := join(t, m, "abc", "x", "node1"); code == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 {
		t.Error("200 requests at once, and none is turned down")
	}
	csr, _ := request(t)
	// httptest's requests come from one address; over the network they come from another.
	_, err := securityapi.Call(t.Context(), client(t, m.CA.Credentials()), http.MethodPost, m.URL+securityapi.PathJoin,
		securityapi.JoinRequest{ID: "abc", Secret: "x", Host: "node1", CSR: csr}, new(securityapi.Certificate))
	if err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("another address: %v, expected the usual refusal", err)
	}
}

// TestBadBodies: nothing that is sent ends the process or is answered with 500.
func TestBadBodies(t *testing.T) {
	m := start(t, ca.Config{})
	h := client(t, m.CA.Credentials())
	for _, path := range []string{securityapi.PathJoin, securityapi.PathMasterJoin} {
		for _, body := range []string{"", "{", "null x", `{"unknown":1}`, `[]`, `{"host":1}`, "\x00", strings.Repeat("x", securityapi.MaxBody+1), `{"host":"` + strings.Repeat("x", securityapi.MaxBody) + `"}`} {
			resp, err := h.Post(m.URL+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%s with %.20q…: %d, expected 400", path, body, resp.StatusCode)
			}
		}
	}
	if code, _ := m.As(anonymous, http.MethodGet, securityapi.Prefix+"nothing", nil, nil); code != http.StatusNotFound {
		t.Errorf("unknown path: %d, expected 404", code)
	}
}

// TestOwnPKI: netmasters share their keys, and nobody joins.
func TestOwnPKI(t *testing.T) {
	a, err := pki.NewAuthority("own", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.Issue(pki.Subject{Name: "m", Unit: pki.UnitMaster}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own := pki.NewCredentials()
	if err := (pki.Stored{Cert: cert, Key: key, Roots: pki.EncodeCertificates(a.Cert)}).Use(own); err != nil {
		t.Fatal(err)
	}
	store := newStore(t)
	first := catest.Start(t, catest.Port(t), ca.Config{OwnPKI: own, Secret: secret}, store)
	second := catest.Start(t, catest.Port(t), ca.Config{OwnPKI: own, Secret: secret, Join: []string{first.URL}}, store.Connect())
	if k := second.CA.Keys(); len(k) != 1 || k[0].ID != first.CA.Keys()[0].ID || second.CA.Hash() != "" {
		t.Errorf("keys %d, hash %q", len(k), second.CA.Hash())
	}
	csr, _ := request(t)
	for path, body := range map[string]any{
		securityapi.PathJoin:   securityapi.JoinRequest{Host: "node1", CSR: csr, ID: "a", Secret: "b"},
		securityapi.PathTokens: securityapi.TokenRequest{},
		securityapi.PathRotate: struct{}{},
		securityapi.PathIssue:  securityapi.IssueRequest{Name: "x", Unit: "agent", CSR: csr},
	} {
		code, text := first.As(identity.Identity{Kind: identity.Root}, http.MethodPost, path, body, nil)
		if code != http.StatusNotFound || !strings.Contains(text, "--tls-ca") {
			t.Errorf("%s: %d %s, expected 404 and a word about --tls-ca", path, code, text)
		}
	}
}

// TestSecretsStayInside: no answer, no record and no log line has a key or a token's secret.
func TestSecretsStayInside(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	log, lines := catest.Log()
	m := catest.Start(t, catest.Port(t), ca.Config{Dir: dir, Log: log, Secret: secret}, store)
	id, tok := newToken(t, m, securityapi.TokenRequest{Uses: 2})
	if code, _ := join(t, m, id, tok, "node1"); code != http.StatusOK {
		t.Fatal(code)
	}
	join(t, m, id, tok+"x", "node2")
	m.Root(http.MethodPost, securityapi.PathRotate, struct{}{}, nil)
	var seen strings.Builder
	seen.WriteString(lines.String())
	for _, path := range []string{securityapi.PathStatus, securityapi.PathTokens, securityapi.PathHosts, securityapi.PathRoots} {
		_, text := m.As(identity.Identity{Kind: identity.Root}, http.MethodGet, path, nil, nil)
		seen.WriteString(text)
	}
	kvs, _, err := store.List(t.Context(), "/")
	if err != nil || len(kvs) < 3 {
		t.Fatalf("%d records, %v", len(kvs), err)
	}
	for _, kv := range kvs {
		seen.Write(kv.Value)
	}
	bundle, err := os.ReadFile(filepath.Join(dir, "ca.json"))
	if err != nil || !strings.Contains(string(bundle), "PRIVATE KEY") {
		t.Fatalf("ca.json is not where the key is: %v", err)
	}
	for _, s := range []string{tok, "PRIVATE KEY", string(secret)} {
		if strings.Contains(seen.String(), s) {
			t.Errorf("%.12s… is outside", s)
		}
	}
}
