package agent

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/ofnet/bgp"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

func TestSpeakerRecords(t *testing.T) {
	whole := state.Bgp{Hostname: "host1", RouterIP: "50.1.1.2/24", As: "65002", Neighbor: "50.1.1.200", NeighborAs: "500"}
	with := func(change func(*state.Bgp)) state.Bgp { r := whole; change(&r); return r }
	neighbor := bgp.Neighbor{Addr: netip.MustParseAddr("50.1.1.200"), AS: 500}
	for _, c := range []struct {
		name string
		rec  state.Bgp
		want bgp.Config
		err  string
	}{
		{"plain", whole, bgp.Config{AS: 65002, Router: netip.MustParsePrefix("50.1.1.2/24"), Neighbors: []bgp.Neighbor{neighbor}}, ""},
		{
			"all", with(func(r *state.Bgp) {
				r.As, r.RouterIP, r.RouterIP6, r.Password, r.Neighbors = "1.10", "50.1.1.2-9/24", "2001:db8:50::2/64", "x", []string{"50.1.1.201", "2001:db8:50::c9@501"}
			}),
			bgp.Config{
				AS: 65546, Router: netip.MustParsePrefix("50.1.1.2/24"), Router6: netip.MustParsePrefix("2001:db8:50::2/64"),
				Neighbors: []bgp.Neighbor{
					{Addr: neighbor.Addr, AS: 500, Password: "x"},
					{Addr: netip.MustParseAddr("50.1.1.201"), AS: 500, Password: "x"},
					{Addr: netip.MustParseAddr("2001:db8:50::c9"), AS: 501, Password: "x"},
				},
			},
			"",
		},
		{"no neighbor", with(func(r *state.Bgp) { r.Neighbor, r.NeighborAs = "", "" }), bgp.Config{AS: 65002, Router: netip.MustParsePrefix("50.1.1.2/24")}, ""},
		{"AS", with(func(r *state.Bgp) { r.As = "many" }), bgp.Config{Router: netip.MustParsePrefix("50.1.1.2/24"), Neighbors: []bgp.Neighbor{neighbor}}, `AS "many"`},
		{"neighbor AS", with(func(r *state.Bgp) { r.NeighborAs = "" }), bgp.Config{AS: 65002, Router: netip.MustParsePrefix("50.1.1.2/24"), Neighbors: []bgp.Neighbor{{Addr: neighbor.Addr}}}, `neighbor AS ""`},
		{"router", with(func(r *state.Bgp) { r.RouterIP = "50.1.1.2" }), bgp.Config{AS: 65002, Neighbors: []bgp.Neighbor{neighbor}}, `router address "50.1.1.2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := asSpeaker(c.rec)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, expected one with %q", err, c.err)
			}
		})
	}
}

// A host whose routers are on another subnet shares no VLAN with this one: its
// endpoints are left to the routes.
func TestEndpointsOfHostsOnOtherLinks(t *testing.T) {
	store := memory.New()
	n := network("net1", 1)
	n.PktTagType, n.ExtPktTag = "vlan", 1
	put(t, store, state.GlobalKey, global)
	put(t, store, state.NetworkRoot+n.ID, n)
	put(t, store, state.HostRoot+"host2", state.Host{ID: "host2", VtepIP: "192.168.60.11"})
	ep := endpoint(n, 1, "host2")
	put(t, store, state.EndpointRoot+ep.ID, ep)
	_, d, _ := start(t, store)
	reached := func(directly bool) func() bool {
		return func() bool { e, ok := d.State().Endpoints[ep.ID]; return ok && e.VTEP.IsValid() == directly }
	}
	speaker := func(host, router string) {
		put(t, store, state.BgpRoot+host, state.Bgp{Hostname: host, RouterIP: router, As: "65002", Neighbor: "50.1.1.200", NeighborAs: "500"})
	}
	eventually.True(t, "declared", reached(true))
	speaker("host1", "50.1.1.2/24")
	eventually.True(t, "the speaker is declared", func() bool { return d.State().Speaker != nil })
	speaker("host2", "60.1.1.2/24")
	eventually.True(t, "behind routers", reached(false))
	speaker("host2", "50.1.1.3/24")
	eventually.True(t, "on the same link", reached(true))
	speaker("host1", "60.1.1.2/24")
	eventually.True(t, "behind routers, as this host has moved", reached(false))
	commit(t, store, objdb.Delete(state.BgpRoot+"host1"))
	eventually.True(t, "no speaker here", func() bool { return reached(true)() && d.State().Speaker == nil })
}
