package authz

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

func user(name string, grants ...identity.Grant) identity.Identity {
	return identity.Identity{Kind: identity.User, Name: name, Grants: grants}
}

var (
	admin   = user("root", identity.Grant{Role: identity.Admin})
	blueOps = user("jane", identity.Grant{Role: identity.Ops, Tenant: "blue"})
	blueSee = user("vic", identity.Grant{Role: identity.Viewer, Tenant: "blue"})
	viewer  = user("vera", identity.Grant{Role: identity.Viewer})
	nobody  = user("new")
	host1   = identity.Identity{Kind: identity.Host, Name: "host1"}
	monitor = identity.Identity{Kind: identity.Monitor, Name: "prometheus"}
	plain   = identity.Identity{Kind: identity.Anonymous}
	open    = identity.Identity{Kind: identity.Anonymous, Grants: []identity.Grant{{Role: identity.Admin}}}
)

// TestDecide holds the rules to examples, and what they say to people.
func TestDecide(t *testing.T) {
	rules := New(Config{})
	for _, c := range []struct {
		id     identity.Identity
		method string
		path   string
		body   string
		want   string // a part of the refusal; "" means allowed
	}{
		{admin, "DELETE", "/whatever", "", ""},
		{open, "DELETE", "/api/v1/globals/global/", "", ""},
		{plain, "GET", "/api/v1/networks/", "", "log in first (netctl login)"},
		{plain, "GET", "/metrics", "", "log in first"},
		{plain, "GET", "/healthz", "", ""},
		{plain, "GET", "/", "", ""},
		{plain, "HEAD", "/ui/", "", ""},
		{plain, "GET", "/ui/app.js", "", ""},
		{plain, "GET", "//ui/", "", "log in first"},
		{plain, "POST", "/ui/", "", "log in first"},
		{plain, "POST", "/api/v1/auth_proxy/login/", "", ""},
		{plain, "POST", "/api/v1/security/join", "", ""},
		{plain, "GET", "/api/v1/security/join", "", "log in first"},
		{blueOps, "GET", "/api/v1/networks/", "", ""},
		{blueOps, "GET", "/api/v1/networks/blue:web/", "", ""},
		{blueOps, "GET", "/api/v1/inspect/networks/red:web/", "", "user jane may not read networks of tenant red: role viewer or ops of tenant red is needed"},
		{blueOps, "POST", "/api/v1/networks/red:web/", `{"tenantName":"blue"}`, "user jane may not change networks of tenant red: role ops of tenant red is needed"},
		{blueOps, "POST", "/api/v1/networks/blue:web/", `{"tenantName":"red"}`, `the path names tenant blue, the body tenant "red"`},
		{blueOps, "POST", "/api/v1/networks/blue:web/", `{"tenantname":"blue","TENANTNAME":"red"}`, `the body tenant "red"`},
		{blueOps, "POST", "/api/v1/networks/blue:web/", `{"tenantName":"blue"}`, ""},
		{blueOps, "DELETE", "/api/v1/rules/blue:p:1/", "", ""},
		{blueOps, "DELETE", "/api/v1/rules/blu%65:p:1/", "", ""},
		{blueOps, "DELETE", "/api/v1/rules/blue%2F..%2Fred:p:1/", "", "may not change rules"},
		{blueOps, "GET", "/api/v1/tenants/blue/", "", ""},
		{blueOps, "GET", "/api/v1/tenants/red/", "", "may not read tenants of tenant red"},
		{blueOps, "POST", "/api/v1/tenants/blue/", `{"tenantName":"blue"}`, "role admin"},
		{blueOps, "GET", "/api/v1/Bgps/", "", "may not read Bgps"},
		{blueOps, "GET", "/api/v1/inspect/Bgps/host1/", "", "may not read Bgps"},
		{blueOps, "GET", "/api/v1/aciGws/aciGw/", "", "may not read aciGws"},
		{blueOps, "GET", "/api/v1/globals/global/", "", ""},
		{blueOps, "GET", "/api/v1/inspect/globals/global", "", ""},
		{blueOps, "GET", "/api/v1/globals/", "", "may not read globals"},
		{blueOps, "PUT", "/api/v1/globals/global/", "", "role admin is needed"},
		{blueOps, "GET", "/api/v1/unknown/", "", "role admin is needed"},
		{blueOps, "GET", "/debug/ofnet", "", "role viewer of all tenants"},
		{blueOps, "POST", "/plugin/createEndpoint", "", "the certificate of a host"},
		{blueSee, "GET", "/api/v1/networks/blue:web/", "", ""},
		{blueSee, "DELETE", "/api/v1/networks/blue:web/", "", "role ops of tenant blue is needed"},
		{viewer, "GET", "/api/v1/Bgps/", "", ""},
		{viewer, "GET", "/metrics", "", ""},
		{viewer, "DELETE", "/api/v1/networks/blue:web/", "", "role ops of tenant blue is needed"},
		{nobody, "GET", "/api/v1/networks/", "", "a role is needed"},
		{host1, "POST", "/plugin/createEndpoint", "", ""},
		{host1, "GET", "/plugin/host/host1/bgp-secret", "", ""},
		{host1, "GET", "/plugin/host/host2/bgp-secret", "", "the certificate of host host2 is needed"},
		{host1, "GET", "/api/v1/networks/", "", "a role is needed"},
		{host1, "POST", "/api/v1/networks/default:0123456789abcdefghijklmno/", "", "role ops"},
		{monitor, "GET", "/metrics", "", ""},
		{monitor, "HEAD", "/metrics", "", ""},
		{monitor, "GET", "/api/v1/networks/", "", "a role is needed"},
	} {
		err := rules.Decide(c.id, Request{Method: c.method, Path: c.path, Body: func() ([]byte, error) { return []byte(c.body), nil }})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %s %s: %v", c.id, c.method, c.path, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %s %s: %v, want %q", c.id, c.method, c.path, err, c.want)
		case err != nil && (c.id.Kind == identity.Anonymous) != errs.Is(err, errs.Unauthenticated):
			t.Errorf("%s: %s %s: kind %s", c.id, c.method, c.path, errs.KindOf(err))
		}
	}
}

// TestSwarm: where there is a swarm, an agent may make and remove its networks.
func TestSwarm(t *testing.T) {
	rules := New(Config{Swarm: true})
	for path, allowed := range map[string]bool{
		"/api/v1/networks/default:0123456789abcdefghijklmno/": true,
		"/api/v1/networks/blue:0123456789abcdefghijklmno/":    false,
		"/api/v1/networks/default:web/":                       false,
	} {
		for _, method := range []string{"POST", "DELETE"} {
			if err := rules.Decide(host1, Request{Method: method, Path: path}); (err == nil) != allowed {
				t.Errorf("%s %s: %v", method, path, err)
			}
		}
	}
}
