package inspect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
