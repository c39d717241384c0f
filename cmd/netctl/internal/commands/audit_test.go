package commands

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/state/identity"
)

// TestCanI asks the decision that requests get.
func TestCanI(t *testing.T) {
	id := identity.Identity{Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}}}
	gate := authz.Gate(authz.New(authz.Config{}), http.NotFoundHandler())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gate.ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
	}))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		args   string
		status int
		out    string
	}{
		{"delete network/blue:web", exitOK, "yes"},
		{"list networks", exitOK, "yes"},
		{"create network/red:web", exitRequest, "no: user jane may not change networks of tenant red: role ops of tenant red is needed"},
		{"get Bgp/host1", exitRequest, "no: user jane may not read Bgps"},
		{"inspect /api/v1/cluster/", exitRequest, "no: "},
		{"fly network/blue:web", exitRequest, `verb "fly" is unknown`},
		{"get plane/1", exitRequest, "expected TYPE/KEY"},
	} {
		var out bytes.Buffer
		args := append([]string{"netctl", "--netmaster", s.URL, "can-i"}, strings.Fields(c.args)...)
		if status := Run(t.Context(), args, strings.NewReader(""), &out, &out); status != c.status || !strings.Contains(out.String(), c.out) {
			t.Errorf("can-i %s: status %d, %s; want %d, %q", c.args, status, out.String(), c.status, c.out)
		}
	}
}

func TestAuditCommand(t *testing.T) {
	var query string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		_ = json.NewEncoder(w).Encode(auditRecord{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Who: "user jane", How: "password", Source: "10.0.0.1:5", Verb: "DELETE", Path: "/api/v1/networks/blue:web/", Status: 403, Reason: "no"})
	}))
	t.Cleanup(s.Close)
	var out bytes.Buffer
	args := []string{"netctl", "--netmaster", s.URL, "audit", "--denied", "--user", "jane", "--since", "2026-01-02T03:00:00Z"}
	status := Run(t.Context(), args, strings.NewReader(""), &out, &out)
	want := `2026-01-02T03:04:05Z user jane (password 10.0.0.1:5) DELETE /api/v1/networks/blue:web/ 403 "no"` + "\n"
	if status != exitOK || out.String() != want || query != "denied=true&since=2026-01-02T03%3A00%3A00Z&user=jane" {
		t.Errorf("status %d, %q asked for\n%swant\n%s", status, query, out.String(), want)
	}
	if status := Run(t.Context(), []string{"netctl", "audit", "--since", "noon"}, strings.NewReader(""), &out, &out); status != exitUsage {
		t.Errorf("a time that is none: status %d", status)
	}
}
