package authz

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/openapi"
	"github.com/contiv/netplugin/state/identity"
)

// allowed is the rules once more, as prose has them: who may do what with an object.
func allowed(id identity.Identity, method string, inspected bool, kind, tenant, key, bodyTenant string) bool {
	admin, sees, changes, seesAll := false, false, false, false
	for _, g := range id.Grants {
		switch {
		case g.Role == "admin":
			admin = true
		case g.Role == "viewer" && g.Tenant == "":
			seesAll = true
		case g.Role == "viewer" && g.Tenant == tenant:
			sees = true
		case g.Role == "ops" && g.Tenant == tenant:
			sees, changes = true, true
		}
	}
	read := method == "GET"
	switch {
	case admin || id.Kind == identity.Root || id.Kind == identity.Master:
		return true
	case kind == "global" && key == "global" && read:
		return len(id.Grants) > 0
	case kind == "global" || kind == "aciGw" || kind == "Bgp":
		return read && seesAll
	case key == "" && read && !inspected: // a list, which is filtered
		return len(id.Grants) > 0
	case read:
		return sees || seesAll
	case kind == "tenant":
		return false
	default:
		return changes && (method == "DELETE" || bodyTenant == tenant)
	}
}

// TestModel: the table decides as the prose does, for any identity and request.
func TestModel(t *testing.T) {
	rules, kinds := New(Config{}), contivmodel.Kinds()
	tenants := []string{"blue", "red", "bl", "blue.x"}
	roles := []identity.Role{identity.Admin, identity.Ops, identity.Viewer}
	rapid.Check(t, func(t *rapid.T) {
		id := identity.Identity{Name: "n", Kind: rapid.SampledFrom([]identity.Kind{
			identity.User, identity.User, identity.User, identity.Anonymous, identity.Host, identity.Monitor, identity.Root, identity.Master,
		}).Draw(t, "identity")}
		if id.Kind == identity.User {
			for range rapid.IntRange(0, 3).Draw(t, "grants") {
				g := identity.Grant{Role: rapid.SampledFrom(roles).Draw(t, "role")}
				if g.Role == identity.Ops || rapid.Bool().Draw(t, "of a tenant") && g.Role == identity.Viewer {
					g.Tenant = rapid.SampledFrom(tenants).Draw(t, "granted")
				}
				id.Grants = append(id.Grants, g)
			}
		}
		d := rapid.SampledFrom(kinds).Draw(t, "kind").Description()
		method := rapid.SampledFrom([]string{"GET", "POST", "PUT", "DELETE"}).Draw(t, "method")
		tenant, body := rapid.SampledFrom(tenants).Draw(t, "tenant"), rapid.SampledFrom(tenants).Draw(t, "tenant of the body")
		inspected := method == "GET" && rapid.Bool().Draw(t, "inspect")
		key := tenant
		switch {
		case d.Type == "global":
			key = rapid.SampledFrom([]string{"global", "other"}).Draw(t, "key")
		case !inTenant(d):
			key = "name"
		case len(d.Names) > 1:
			key = tenant + strings.Repeat(":x", len(d.Names)-1)
		}
		path := "/api/v1/" + d.Collection + "/" + key + "/"
		switch {
		case inspected:
			path = "/api/v1/inspect/" + d.Collection + "/" + key + "/"
		case method == "GET" && rapid.Bool().Draw(t, "list"):
			path, key = "/api/v1/"+d.Collection+"/", ""
		}
		err := rules.Decide(id, Request{Method: method, Path: path, Body: func() ([]byte, error) { return fmt.Appendf(nil, `{"tenantName":%q}`, body), nil }})
		if want := allowed(id, method, inspected, d.Type, tenant, key, body); (err == nil) != want {
			t.Fatalf("%+v: %s %s with a body of tenant %s: %v, want allowed: %t", id, method, path, body, err, want)
		}
	})
}

// TestDescribed: what users can ask is in the description of the API.
func TestDescribed(t *testing.T) {
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range fixed() {
		path := strings.TrimSuffix(r.path, "/") + "/"
		own := strings.HasPrefix(path, security) || strings.HasPrefix(path, authProxy) || path == objects+"openapi.json/"
		if strings.HasPrefix(path, objects) && !own && doc.Paths[path] == nil {
			t.Errorf("%s is not described in contivmodel/openapi", path)
		}
	}
}
