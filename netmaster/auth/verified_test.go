package auth_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb/memory"
)

// TestKeyIsGone: a token that has been accepted before ends with the key that has signed it, and
// with another key of the same name.
func TestKeyIsGone(t *testing.T) {
	var shared atomic.Pointer[[]seal.Key]
	first := keys()
	shared.Store(&first)
	sv := start(t, memory.New(), func(c *auth.Config) { c.Keys = func() []seal.Key { return *shared.Load() } })
	token := sv.login("admin", sv.first)
	sv.want(200, "GET", "whoami/", token, "")
	other := clusterKey(2)
	shared.Store(&other)
	sv.want(400, "GET", "whoami/", token, "")
	shared.Store(&first)
	sv.want(200, "GET", "whoami/", token, "")
	renamed := clusterKey(1)
	renamed[0].ID = "k2"
	shared.Store(&renamed)
	sv.want(400, "GET", "whoami/", token, "")
}

// BenchmarkAuthenticate: what each request with a login token pays.
func BenchmarkAuthenticate(b *testing.B) {
	sv := start(b, memory.New(), nil)
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1/networks/", nil)
	r.Header.Set("X-Auth-Token", sv.login("admin", sv.first))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := sv.s.Authenticate(r); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
