package authz

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/contiv/netplugin/state/identity"
)

// TestTooManyChanges: a user or a host that floods is refused with a word; what it reads is
// served, and so are others and admins.
func TestTooManyChanges(t *testing.T) {
	gate := Gate(New(Config{}), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func(id identity.Identity, method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(identity.With(t.Context(), id), method, path, nil)
		gate.ServeHTTP(w, r)
		return w
	}
	const rule = "/api/v1/rules/blue:p:1/"
	for _, c := range []struct {
		id           identity.Identity
		method, path string
		burst        int
	}{
		{blueOps, "DELETE", rule, userBurst},
		{host1, "PUT", "/plugin/host/host1/records", hostBurst},
	} {
		var refused *httptest.ResponseRecorder
		for range 20 * c.burst { // more come in than a machine of any pace has tokens for
			if w := send(c.id, c.method, c.path); w.Code == http.StatusTooManyRequests {
				refused = w
				break
			}
		}
		if refused == nil {
			t.Fatalf("%s is not refused", c.id)
		}
		if !strings.Contains(refused.Body.String(), c.id.String()+" makes too many changes") || refused.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %q", c.id, refused.Body)
		}
	}
	if w := send(blueOps, "GET", rule); w.Code != http.StatusOK {
		t.Errorf("reading: %d", w.Code)
	}
	other := user("joan", identity.Grant{Role: identity.Ops, Tenant: "blue"})
	if w := send(other, "DELETE", rule); w.Code != http.StatusOK {
		t.Errorf("another user: %d", w.Code)
	}
	for range 2 * hostBurst {
		if w := send(admin, "DELETE", rule); w.Code != http.StatusOK {
			t.Fatalf("an admin: %d", w.Code)
		}
	}
}
