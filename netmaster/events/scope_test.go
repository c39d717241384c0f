package events_test

import (
	"io"
	"net/http"
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

// TestStreamsOfOne: one identity does not take the streams of all.
func TestStreamsOfOne(t *testing.T) {
	hub := run(t, memory.New(), events.Config{MaxEach: 2})
	jane := httptest.NewServer(as(identity.Identity{Kind: identity.User, Name: "jane", Grants: []identity.Grant{{Role: identity.Viewer}}}, hub))
	t.Cleanup(jane.Close)
	vic := httptest.NewServer(as(identity.Identity{Kind: identity.User, Name: "vic", Grants: []identity.Grant{{Role: identity.Viewer}}}, hub))
	t.Cleanup(vic.Close)
	for range 2 {
		listen(t, jane.URL, "").next()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, jane.URL+events.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := jane.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusServiceUnavailable || string(text) != "user jane has 2 streams already; close one\n" {
		t.Errorf("a third stream: status %d, %q", resp.StatusCode, text)
	}
	listen(t, vic.URL, "").next()
}
