package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/utils/pki"
)

// TestNamesOfTheCertificate: netmaster may be called by the names that its certificate has, such
// as one of the user's own PKI, and by those of --allowed-hosts; by no other one.
func TestNamesOfTheCertificate(t *testing.T) {
	a, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := a.Issue(pki.Subject{Name: "m", Unit: pki.UnitMaster, Names: []string{"contiv.example.com"}, Valid: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &security{opts: &securityOptions{audit: auditOptions{hosts: "other.example.com"}}, creds: pki.NewCredentials()}
	if err := (pki.Stored{Cert: cert, Key: key, Roots: pki.EncodeCertificates(a.Cert)}).Use(s.creds); err != nil {
		t.Fatal(err)
	}
	h := s.gate(authz.New(authz.Config{}))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{"contiv.example.com:9999": 200, "other.example.com": 200, "netmaster": 200, "evil.example.com:9999": 403} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, expected %d: %s", host, w.Code, want, w.Body)
		}
	}
}
