package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNotFromPages: what a page of another site has a browser send is refused, and passes without
// the guard; netmasters, root of the host and collectors notice nothing.
func TestNotFromPages(t *testing.T) {
	h := notFromPages("host1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const json = "application/json"
	for _, c := range []struct {
		method, host, contentType, origin string
		certificate                       bool
		want                              int
	}{
		{"POST", "10.1.1.1:9090", json, "", false, 200},
		{"POST", "localhost:9090", json, "", false, 200},
		{"POST", "host1:9090", json, "", false, 200},
		{"GET", "host1.example.com:9090", "", "", false, 200},
		{"POST", "10.1.1.1:9090", "text/plain", "", false, 415},
		{"POST", "10.1.1.1:9090", json, "https://evil.example", false, 403},
		{"DELETE", "evil.example:9090", "", "", false, 403},
		{"POST", "10.1.1.1:9090", "", "", true, 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/trace", strings.NewReader("{}"))
		r.Host = c.host
		r.Header.Set("Content-Type", c.contentType)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.certificate {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%+v: status %d: %s", c, w.Code, w.Body)
		}
	}
}
