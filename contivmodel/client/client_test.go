package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
)

func dial(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestSession uses every call once against a real netmaster.
func TestSession(t *testing.T) {
	c := dial(t, client.Config{URLs: []string{apitest.Start(t, memory.New(), apitest.Config(apitest.Log(t))) + "/"}})
	ctx := t.Context()
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := client.Put(ctx, c, contivmodel.TenantKind(), &contivmodel.Tenant{TenantName: "blue"})
	check("create a tenant", err)
	n, err := client.Put(ctx, c, contivmodel.NetworkKind(), &contivmodel.Network{TenantName: "blue", NetworkName: "n", Encap: "vlan", Subnet: "10.1.1.0/24"})
	check("create a network", err)
	if n.Key != "blue:n" || n.Links.Tenant.Key != "blue" || n.NwType != "data" {
		t.Errorf("stored network %+v", n)
	}
	nets, err := client.List(ctx, c, contivmodel.NetworkKind())
	check("list networks", err)
	if diff := cmp.Diff([]contivmodel.Network{*n}, nets); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	g, err := client.Get(ctx, c, contivmodel.GlobalKind(), contivmodel.GlobalName)
	check("get the settings", err)
	if g.Vlans != contivmodel.DefaultVLANs {
		t.Errorf("settings %+v", g)
	}
	ep, rev, err := c.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{TenantName: "blue", NetworkName: "n", ConfigEP: masterapi.ConfigEP{Container: "c", Host: "h"}})
	check("create an endpoint", err)
	if ep.EndpointConfig.IPAddress != "10.1.1.1" || rev == 0 {
		t.Errorf("endpoint %+v at revision %d", ep.EndpointConfig, rev)
	}
	check("update an endpoint", c.UpdateEndpoint(ctx, masterapi.UpdateEndpointRequest{Tenant: "blue", Network: "n", EndpointID: "c", Event: "start", ContainerID: "id"}))
	found, err := c.InspectEndpoint(ctx, "id")
	check("inspect an endpoint", err)
	if found.Oper.ContainerID != "id" || found.Oper.IPAddress != [2]string{"10.1.1.1", ""} {
		t.Errorf("inspected %+v", found)
	}
	addr, err := c.AllocAddress(ctx, masterapi.AllocAddressRequest{NetworkID: "n.blue"})
	check("reserve an address", err)
	check("release an address", c.ReleaseAddress(ctx, masterapi.ReleaseAddressRequest{NetworkID: "n.blue", IPv4Address: addr.IPv4Address}))
	oper, err := client.Inspect(ctx, c, contivmodel.NetworkKind(), "blue:n")
	check("inspect a network", err)
	if oper.Oper.NumEndpoints != 1 || oper.Oper.AllocatedIPAddresses != "10.1.1.1" || oper.Config.Key != "blue:n" {
		t.Errorf("inspected %+v", oper)
	}
	_, _, err = c.DeleteEndpoint(ctx, masterapi.DeleteEndpointRequest{TenantName: "blue", NetworkName: "n", EndpointID: "c"})
	check("delete an endpoint", err)
	check("delete a network", client.Delete(ctx, c, contivmodel.NetworkKind(), "blue:n"))
	v, err := c.Version(ctx)
	check("version", err)
	if v.Version != "1.2.0" {
		t.Errorf("version %+v", v)
	}
	var refused *client.Error
	if err := client.Delete(ctx, c, contivmodel.NetworkKind(), "blue:n"); !errors.As(err, &refused) || refused.Text != "network not found" {
		t.Errorf("delete again: %v", err)
	}
	if _, err := client.Get(ctx, c, contivmodel.NetworkKind(), "a/b?c#d"); !errors.As(err, &refused) || refused.Text != "network not found" {
		t.Errorf("a key with special characters: %v", err)
	}
}

// TestStatus checks what becomes of the statuses of answers.
func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		want   string
	}{
		{404, "404 page not found\n", "Page not found!"},
		{403, "no\n", "Access denied!"},
		{500, "tenant not found\n", "tenant not found"},
		{503, "not the leader any more\n", "not the leader any more"},
		{500, "", "500 Internal Server Error"},
		{401, "who?\n", "401 Unauthorized"},
		{200, "<html>", "the answer is not what was expected"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		_, err := client.List(t.Context(), dial(t, client.Config{URLs: []string{s.URL}}), contivmodel.TenantKind())
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%d %q: %v, want %s", tc.status, tc.body, err, tc.want)
		}
		s.Close()
	}
}

// TestSeveral checks which server is asked, and how often.
func TestSeveral(t *testing.T) {
	serve := func(status int) (url string, asked *int) {
		asked = new(int)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			*asked++
			w.WriteHeader(status)
			_, _ = w.Write([]byte("[]\n"))
		}))
		t.Cleanup(s.Close)
		return s.URL, asked
	}
	good, asked := serve(200)
	noLeader, waiting := serve(503)
	broken, refusals := serve(500)
	const gone = "http://127.0.0.1:1"

	list := func(urls ...string) error {
		_, err := client.List(t.Context(), dial(t, client.Config{URLs: urls}), contivmodel.TenantKind())
		return err
	}
	if err := list(gone, noLeader, good); err != nil || *asked != 1 || *waiting != 1 {
		t.Errorf("%v; asked %d and %d times", err, *asked, *waiting)
	}
	if err := list(broken, good); err == nil || *asked != 1 || *refusals != 1 {
		t.Errorf("a refusal is final: %v; asked %d and %d times", err, *asked, *refusals)
	}
	err := list(gone, gone)
	if !errs.Is(err, errs.Unavailable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestToken(t *testing.T) {
	var got []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("X-Auth-Token"))
		_, _ = w.Write([]byte("[]\n"))
	})
	plain, secure := httptest.NewServer(h), httptest.NewTLSServer(h)
	defer plain.Close()
	defer secure.Close()
	for _, url := range []string{plain.URL, secure.URL} {
		c := dial(t, client.Config{URLs: []string{url}, Token: "secret", Insecure: true})
		if _, err := client.List(t.Context(), c, contivmodel.TenantKind()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"", "secret"}, got); diff != "" {
		t.Errorf("token over http and https (-want +got):\n%s", diff)
	}
	c := dial(t, client.Config{URLs: []string{secure.URL}})
	if _, err := client.List(t.Context(), c, contivmodel.TenantKind()); err == nil {
		t.Error("an unknown certificate was accepted")
	}
}

func TestURLs(t *testing.T) {
	for _, url := range []string{"", "netmaster:9999", "ftp://netmaster", "http://", "http://h?x=1", "http://h#x", "://", "http://[::1"} {
		if _, err := client.New(client.Config{URLs: []string{url}}); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := client.New(client.Config{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("no URL: %v", err)
	}
}
