package events_test

import (
	"net/http/httptest"
	"testing"

	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
)

// TestTenants: a client is told of the objects of its tenants only, in resets and after.
func TestTenants(t *testing.T) {
	store := memory.New()
	put(t, store, 1, "network/blue:a", "network/red:a", "Bgp/host1", "tenant/red")
	hub := run(t, store, events.Config{})
	id := identity.Identity{Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}}}
	server := httptest.NewServer(as(id, hub))
	t.Cleanup(server.Close)
	l := listen(t, server.URL, "")
	l.expect(reset(2, `{"kind":"network","key":"blue:a","object":{"v":1}}`))
	put(t, store, 2, "network/red:b", "Bgp/host1")
	put(t, store, 3, "network/blue:b")
	l.expect("event: added\nid: 4\ndata: {\"event\":\"added\",\"revision\":4,\"objects\":[{\"kind\":\"network\",\"key\":\"blue:b\",\"object\":{\"v\":3}}]}\n")
}
