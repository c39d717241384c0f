package dockplugin

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
)

// known waits until the agent knows what has been created.
func (w *world) known(refs ...state.NetworkRef) {
	w.t.Helper()
	w.eventually("the agent knows the networks", func() bool {
		t, _, _, _ := w.agent.Topology()
		for _, p := range refs {
			if !t.Has(p) {
				return false
			}
		}
		return true
	})
}

func TestPools(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254", func(n *contivmodel.Network) { n.IPv6Subnet = "2001:db8:1::/100" })
	w.network("net2", "10.2.1.0/24", "", func(n *contivmodel.Network) { n.TenantName, n.CfgdTag = "blue", "sky" })
	w.group("web", "net1", func(g *contivmodel.EndpointGroup) { g.IPPool, g.CfgdTag = "10.1.1.10-10.1.1.20", "webtag" })
	w.known(state.NetworkRef{Tenant: "blue", Network: "net2"}, state.NetworkRef{Tenant: "default", Network: "net1", Group: "web"})
	named := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for _, c := range []struct {
		pool      string
		options   map[string]string
		v6        bool
		id, reply string // reply without id: the error
	}{
		{"", named("contiv-tag", "webtag"), false, "net1:web.default|10.1.1.0/24", "10.1.1.0/24"},
		{"", named("contiv-tag", "net1.default"), false, "net1.default|10.1.1.0/24", "10.1.1.0/24"},
		{"", named("contiv-tag", "net1.default"), true, "net1.default|2001:db8:1::/100", "2001:db8:1::/100"},
		{"", named("contiv-tag", "sky"), false, "net2.blue|10.2.1.0/24", "10.2.1.0/24"},
		{"", named("contiv-tag", "sky"), true, "", "has no IPv6 subnet"},
		{"", named("tenant", "default", "network", "net1"), false, "net1.default|10.1.1.0/24", "10.1.1.0/24"},
		{"10.1.1.7/24", named("tenant", "default", "network", "net1", "group", "web"), false, "net1:web.default|10.1.1.0/24", "10.1.1.0/24"},
		{"10.1.0.0/16", named("tenant", "default", "network", "net1"), false, "", "expected 10.1.1.0/24"},
		{"2001:db8:1::/100", named("network", "net1"), false, "net1.default|2001:db8:1::/100", "2001:db8:1::/100"},
		{"30.1.1.0/24", nil, false, "30.1.1.0/24", "30.1.1.0/24"},
		{"", nil, false, "", "--subnet"},
		{"30.1.1", nil, false, "", "ADDRESS/LENGTH"},
	} {
		var got cnm.RequestPoolResponse
		err := call200(w.server, "/IpamDriver.RequestPool", cnm.RequestPoolRequest{Pool: c.pool, Options: c.options, V6: c.v6}, &got)
		if c.id == "" {
			if err == nil || !strings.Contains(err.Error(), c.reply) {
				t.Errorf("%s %v: %v, want %q", c.pool, c.options, err, c.reply)
			}
			continue
		}
		if want := (cnm.RequestPoolResponse{PoolID: c.id, Pool: c.reply}); err != nil || got.PoolID != want.PoolID || got.Pool != want.Pool {
			t.Errorf("%s %v: %+v, %v, want %+v", c.pool, c.options, got, err, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254", func(n *contivmodel.Network) { n.IPv6Subnet, n.IPv6Gateway = "2001:db8:1::/100", "2001:db8:1::fe" })
	w.network("nogw", "10.2.1.0/24", "")
	w.group("web", "net1", func(g *contivmodel.EndpointGroup) { g.IPPool = "10.1.1.10-10.1.1.20" })
	w.known(state.NetworkRef{Tenant: "default", Network: "nogw"}, state.NetworkRef{Tenant: "default", Network: "net1", Group: "web"})
	const net1, web = "net1.default|10.1.1.0/24", "net1:web.default|10.1.1.0/24"
	for _, c := range []struct {
		pool, want string
		gateway    bool
		reply      string // without a slash: the error
	}{
		{net1, "", true, "10.1.1.254/24"},
		{net1, "10.1.1.254", true, "10.1.1.254/24"},
		{net1, "10.1.1.1", true, "expected 10.1.1.254"},
		{"net1.default|2001:db8:1::/100", "", true, "2001:db8:1::fe/100"},
		{web, "", true, "10.1.1.254/24"},
		{"10.1.1.0/24", "", true, "10.1.1.254/24"},
		{"nogw.default|10.2.1.0/24", "", true, "10.2.1.0/24"},
		{net1, "", false, "10.1.1.1/24"},
		{net1, "", false, "10.1.1.2/24"},
		{net1, "10.1.1.2", false, "Address already in use"},
		{net1, "10.1.1.254", false, "Address already in use"},
		{net1, "10.9.1.2", false, "requested address is out of range"},
		{net1, "10.1.1.9", false, "10.1.1.9/24"},
		{web, "", false, "10.1.1.10/24"},
		{"10.2.1.0/24", "", false, "10.2.1.1/24"},
		{"net1.default|2001:db8:1::/100", "", false, "2001:db8:1::1/100"},
		{"none.default|10.7.1.0/24", "", false, "network not found"},
	} {
		req := cnm.RequestAddressRequest{PoolID: c.pool, Address: c.want, Options: map[string]string{"com.docker.network.ipam.serial": "true"}}
		if c.gateway {
			req.Options[cnm.OptionAddressType] = cnm.AddressTypeGateway
		}
		var got cnm.RequestAddressResponse
		err := call200(w.server, "/IpamDriver.RequestAddress", req, &got)
		if strings.Contains(c.reply, "/") {
			if err != nil || got.Address != c.reply {
				t.Errorf("%s %q: %s, %v, want %s", c.pool, c.want, got.Address, err, c.reply)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.reply) {
			t.Errorf("%s %q: %v, want %q", c.pool, c.want, err, c.reply)
		}
	}
	for range 2 { // releasing twice, or what was never ours, is not an error
		for _, a := range []struct{ pool, addr string }{
			{net1, "10.1.1.1"},
			{net1, "10.1.1.2"},
			{net1, "10.1.1.9"},
			{web, "10.1.1.10"},
			{"10.2.1.0/24", "10.2.1.1"},
			{"net1.default|2001:db8:1::/100", "2001:db8:1::1"},
			{net1, "10.1.1.254"},
			{"none.default|10.7.1.0/24", "10.7.1.1"},
		} {
			if err := call200(w.server, "/IpamDriver.ReleaseAddress", cnm.ReleaseAddressRequest{PoolID: a.pool, Address: a.addr}, nil); err != nil {
				t.Error(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"net1.default/10.1.1.10-10.1.1.20", "net1.default/10.1.1.254", "net1.default/2001:db8:1::fe"}, w.keys(state.IPAMRoot)); diff != "" {
		t.Errorf("claims after everything was given back:\n%s", diff)
	}
}

// TestAnotherHostsReservationStays: an Engine releases an address after deleting its
// endpoint; by then the address may be reserved for a container on another host.
func TestAnotherHostsReservationStays(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	at, _, err := w.engine.run("c1", "net1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	req := cnm.EndpointRequest{NetworkID: at.NetworkID, EndpointID: at.EndpointID}
	if err := call200(w.server, "/NetworkDriver.DeleteEndpoint", req, nil); err != nil {
		t.Fatal(err)
	}
	const pool = "net1.default|10.1.1.0/24"
	var other cnm.RequestAddressResponse
	elsewhere := NewServer(Config{HostLabel: "host2", Master: w.master, Agent: w.agent, Ports: w.driver, Engine: newEngine(), Log: w.log, Store: w.store})
	if err := call200(elsewhere, "/IpamDriver.RequestAddress", cnm.RequestAddressRequest{PoolID: pool}, &other); err != nil || netip.MustParsePrefix(other.Address).Addr() != at.IPv4 {
		t.Fatalf("another host gets %s, %v, want the address that is free again, %s", other.Address, err, at.IPv4)
	}
	if err := call200(w.server, "/IpamDriver.ReleaseAddress", cnm.ReleaseAddressRequest{PoolID: pool, Address: at.IPv4.String()}, nil); err != nil {
		t.Fatal(err)
	}
	kv, err := w.store.Get(t.Context(), state.IPAMRoot+"net1.default/"+at.IPv4.String())
	if err != nil {
		t.Fatalf("the other host's reservation has gone: %v", err)
	}
	var claim state.AddressClaim
	if err := json.Unmarshal(kv.Value, &claim); err != nil || !strings.HasPrefix(claim.Owner, "reserved/") {
		t.Errorf("claim %+v, %v", claim, err)
	}
}

// TestOwnReservationStays: the same on one host. An Engine releases an address late, after
// getting it again for another container; the second reservation ends with the second
// release, whichever comes first.
func TestOwnReservationStays(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	at, _, err := w.engine.run("c1", "net1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(call200(w.server, "/NetworkDriver.DeleteEndpoint", cnm.EndpointRequest{NetworkID: at.NetworkID, EndpointID: at.EndpointID}, nil))
	const pool = "net1.default|10.1.1.0/24"
	request := func() string {
		t.Helper()
		var got cnm.RequestAddressResponse
		must(call200(w.server, "/IpamDriver.RequestAddress", cnm.RequestAddressRequest{PoolID: pool}, &got))
		return strings.TrimSuffix(got.Address, "/24")
	}
	release := func(a string) {
		t.Helper()
		must(call200(w.server, "/IpamDriver.ReleaseAddress", cnm.ReleaseAddressRequest{PoolID: pool, Address: a}, nil))
	}
	first := at.IPv4.String()
	if got := request(); got != first {
		t.Fatalf("the second container gets %s, want %s, which is free again", got, first)
	}
	release(first)
	third := request()
	if third == first {
		t.Fatalf("a third container gets %s, which is reserved for the second", third)
	}
	release(first)
	release(third)
	if diff := cmp.Diff([]string{"net1.default/10.1.1.254"}, w.keys(state.IPAMRoot)); diff != "" {
		t.Errorf("claims after everything was given back:\n%s", diff)
	}
}

// deaf is a caller that has disconnected.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) FlushError() error { return net.ErrClosed }

// TestUndeliveredAddressIsFree: an Engine that gave up before it got an address does not
// release it.
func TestUndeliveredAddressIsFree(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.known(state.NetworkRef{Tenant: "default", Network: "net1"})
	r := httptest.NewRequest(http.MethodPost, "/IpamDriver.RequestAddress", strings.NewReader(`{"PoolID":"net1.default|10.1.1.0/24"}`))
	w.server.ServeHTTP(deaf{httptest.NewRecorder()}, r)
	if diff := cmp.Diff([]string{"net1.default/10.1.1.254"}, w.keys(state.IPAMRoot)); diff != "" {
		t.Errorf("addresses:\n%s", diff)
	}
}
