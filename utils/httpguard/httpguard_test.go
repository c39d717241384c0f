package httpguard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuard: what browsers send for another site's page is served without the guard, and
// refused by it; what other clients send is served by both.
func TestGuard(t *testing.T) {
	served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	guard := Guard(Config{Hosts: []string{"netmaster.example.com"}, Names: func() []string { return []string{"m1"} }}, served)
	for _, c := range []struct {
		name   string
		method string
		host   string
		header []string
		body   string
		want   int
		word   string
	}{
		{"address", "GET", "10.1.1.1:9999", nil, "", 200, ""},
		{"IPv6 address", "GET", "[fd00::1]:9999", nil, "", 200, ""},
		{"IPv6 address without a port", "GET", "[fd00::1]", nil, "", 200, ""},
		{"localhost", "GET", "LOCALHOST:9999", nil, "", 200, ""},
		{"name in the list", "GET", "Netmaster.Example.com:9999", nil, "", 200, ""},
		{"name with a dot at the end", "GET", "netmaster.example.com.", nil, "", 200, ""},
		{"name of the certificate", "GET", "m1:9999", nil, "", 200, ""},
		{"rebound name", "GET", "evil.example:9999", nil, "", 403, `host "evil.example:9999" is not a name of this daemon`},
		{"name that looks like an address", "GET", "10.1.1.1.evil.example", nil, "", 403, "host"},
		{"own page", "POST", "10.1.1.1:9999", []string{"Origin", "https://10.1.1.1:9999", "Content-Type", "application/json"}, "{}", 200, ""},
		{"another site", "GET", "10.1.1.1:9999", []string{"Origin", "https://evil.example"}, "", 403, `origin "https://evil.example" is another site`},
		{"another port", "GET", "10.1.1.1:9999", []string{"Origin", "https://10.1.1.1:80"}, "", 403, "origin"},
		{"sandboxed page", "POST", "10.1.1.1:9999", []string{"Origin", "null"}, "", 403, "origin"},
		{"another site without an origin", "DELETE", "10.1.1.1:9999", []string{"Sec-Fetch-Site", "cross-site"}, "", 403, "origin"},
		{"link on another site", "GET", "10.1.1.1:9999", []string{"Sec-Fetch-Site", "cross-site"}, "", 200, ""},
		{"JSON", "PUT", "10.1.1.1:9999", []string{"Content-Type", "application/json; charset=utf-8"}, "{}", 200, ""},
		{"text of a form", "POST", "10.1.1.1:9999", []string{"Content-Type", "text/plain"}, "{}", 415, `content type "text/plain": expected application/json`},
		{"form", "POST", "10.1.1.1:9999", []string{"Content-Type", "application/x-www-form-urlencoded"}, "{}", 415, "expected application/json"},
		{"no type", "POST", "10.1.1.1:9999", nil, "{}", 415, ""},
		{"no body", "DELETE", "10.1.1.1:9999", nil, "", 200, ""},
	} {
		request := func() *http.Request {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/api/v1/networks/", strings.NewReader(c.body))
			r.Host = c.host
			for i := 0; i+1 < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			return r
		}
		open, shut := httptest.NewRecorder(), httptest.NewRecorder()
		served.ServeHTTP(open, request())
		guard.ServeHTTP(shut, request())
		if open.Code != 200 || shut.Code != c.want || !strings.Contains(shut.Body.String(), c.word) {
			t.Errorf("%s: %d without the guard, %d %q with it; want 200 and %d %q", c.name, open.Code, shut.Code, shut.Body, c.want, c.word)
		}
	}
}
