package agent

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// A service is declared from its record, its list of providers and their endpoints, in
// whatever order they come and change.
func TestServices(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	ep1, ep2 := endpoint(n, 1, "host1"), endpoint(n, 2, "host2")
	ep1.IPv6Address = "2001:db8:1::1"
	rec := state.ServiceLB{
		ID: "web:default", ServiceName: "web", Tenant: "default", Network: "net1", Ports: []string{"80:8080:TCP", "53:5353:UDP"},
		IPAddress: "10.1.0.200", IPv6Address: "2001:db8:1::200", Providers: map[string]state.Provider{
			"10.1.0.1:default": {IPAddress: "10.1.0.1", EpIDKey: ep1.ID}, "10.1.0.2:default": {IPAddress: "10.1.0.2", EpIDKey: ep2.ID},
		},
	}
	list := state.ProviderList{ID: rec.ID, ServiceName: rec.ID, Providers: []string{"10.1.0.1", "10.1.0.2"}}
	put(t, store, state.GlobalKey, global)
	put(t, store, state.ServiceLBRoot+rec.ID, rec)
	_, d, _ := start(t, store)
	provider := func(addr string, local bool) drivers.ServiceProvider {
		return drivers.ServiceProvider{Addr: netip.MustParseAddrPort(addr), Tenant: "default", Local: local}
	}
	want := func(what string, tcp, udp []drivers.ServiceProvider) {
		t.Helper()
		expected := drivers.Service{
			ID: "web:default", Tenant: "default", VIPs: []netip.Addr{netip.MustParseAddr("10.1.0.200"), netip.MustParseAddr("2001:db8:1::200")},
			Ports: []drivers.ServicePort{{Proto: 6, Port: 80, Providers: tcp}, {Proto: 17, Port: 53, Providers: udp}},
		}
		var diff string
		defer func() { t.Log(diff) }()
		eventually.True(t, what, func() bool {
			diff = cmp.Diff(map[string]drivers.Service{expected.ID: expected}, d.State().Services, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}))
			return diff == ""
		})
	}
	want("declared without providers", nil, nil)
	put(t, store, state.ProviderRoot+list.ID, list)
	want("declared with them", []drivers.ServiceProvider{provider("10.1.0.1:8080", false), provider("10.1.0.2:8080", false)},
		[]drivers.ServiceProvider{provider("10.1.0.1:5353", false), provider("10.1.0.2:5353", false)})
	put(t, store, state.EndpointRoot+ep1.ID, ep1)
	put(t, store, state.EndpointRoot+ep2.ID, ep2)
	want("their endpoints are known", []drivers.ServiceProvider{provider("10.1.0.1:8080", true), provider("[2001:db8:1::1]:8080", true), provider("10.1.0.2:8080", false)},
		[]drivers.ServiceProvider{provider("10.1.0.1:5353", true), provider("[2001:db8:1::1]:5353", true), provider("10.1.0.2:5353", false)})
	list.Providers = list.Providers[1:]
	put(t, store, state.ProviderRoot+list.ID, list)
	want("one has gone", []drivers.ServiceProvider{provider("10.1.0.2:8080", false)}, []drivers.ServiceProvider{provider("10.1.0.2:5353", false)})
	commit(t, store, objdb.Delete(state.ProviderRoot+list.ID))
	want("all have gone", nil, nil)
	commit(t, store, objdb.Delete(state.ServiceLBRoot+rec.ID))
	eventually.True(t, "the service is gone", func() bool { return len(d.State().Services) == 0 })
}

func TestServicePort(t *testing.T) {
	for text, want := range map[string]drivers.ServicePort{
		"80:8080:TCP": {Proto: 6, Port: 80}, "53:5353:UDP": {Proto: 17, Port: 53}, "1:2:SCTP": {Proto: 132, Port: 1},
	} {
		if got, _, err := servicePort(text); err != nil || got.Proto != want.Proto || got.Port != want.Port {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "80", "80:8080", "80:8080:tcp", "0:1:TCP", "1:0:TCP", "70000:1:TCP", "1:2:TCP:x", "x:1:UDP"} {
		if got, _, err := servicePort(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
