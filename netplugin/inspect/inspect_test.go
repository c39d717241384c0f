package inspect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/state/traceapi"
)

func TestNameserver(t *testing.T) {
	for _, c := range []struct {
		names  func() any
		status int
		body   string
	}{
		{nil, http.StatusInternalServerError, "Error fetching nameserver state"},
		{func() any { return map[string]int{"serviceQueue": 0} }, http.StatusOK, `{"serviceQueue":0}`},
	} {
		w := httptest.NewRecorder()
		Handler(Sources{Names: c.names, Metrics: prometheus.NewRegistry()}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/inspect/nameserver", nil))
		if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.body {
			t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.body)
		}
	}
}

// TestMethods: a known path with another method does not exist, as in the original.
func TestMethods(t *testing.T) {
	h := Handler(Sources{Metrics: prometheus.NewRegistry()})
	for path, served := range map[string]string{
		"/inspect/driver": "GET", "/inspect/agent": "GET", "/inspect/nameserver": "GET", "/inspect/bgp": "GET", "/inspect/rules": "GET",
		"/svcstats": "GET", "/version": "GET", "/healthz": "GET", "/readyz": "GET", "/metrics": "GET",
		"/flows": "GET", "/flows/hits": "GET",
		"/debug/reclaimEndpoint/x": "DELETE", traceapi.PathAgent: "POST",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if method == served {
				continue
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			if w.Code != http.StatusNotFound || w.Body.String() != "404 page not found\n" {
				t.Errorf("%s %s: %d %q", method, path, w.Code, w.Body)
			}
		}
	}
}
