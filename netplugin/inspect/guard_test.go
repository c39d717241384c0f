package inspect

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGuard: who may ask an agent what.
func TestGuard(t *testing.T) {
	h := Guard("h1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		unit, name, method, path string
		want                     int
	}{
		{"", "", "GET", "/healthz", 200},
		{"", "", "GET", "/readyz", 200},
		{"", "", "DELETE", "/healthz", 403},
		{"", "", "GET", "/metrics", 403},
		{"", "", "DELETE", "/debug/reclaimEndpoint/x", 403},
		{"master", "10.0.0.1:9999", "DELETE", "/debug/reclaimEndpoint/x", 200},
		{"agent", "h1", "GET", "/inspect/driver", 200},
		{"agent", "h2", "GET", "/inspect/driver", 403},
		{"monitor", "prometheus", "GET", "/metrics", 200},
		{"monitor", "prometheus", "GET", "/inspect/driver", 403},
		{"other", "h1", "GET", "/metrics", 403},
	} {
		r := httptest.NewRequest(c.method, c.path, http.NoBody)
		if c.unit != "" {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: c.name, OrganizationalUnit: []string{c.unit}}}}}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s %s as %s %q: %d, want %d", c.method, c.path, c.unit, c.name, w.Code, c.want)
		}
	}
}
