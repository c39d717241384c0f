package ovsd

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
)

// A route is in the switch as long as one of its next hops is resolved, through those that
// are.
func TestRouterFlowsFollowNextHops(t *testing.T) {
	p, err := ofnet.NewPipeline(ofnet.Settings{Encap: ofnet.VLAN, Routing: true})
	if err != nil {
		t.Fatal(err)
	}
	a, b := netip.MustParseAddr("50.1.1.200"), netip.MustParseAddr("50.1.1.201")
	macA, macB := ofnet.MAC{2, 0, 0, 0, 0, 0xa}, ofnet.MAC{2, 0, 0, 0, 0, 0xb}
	routes := []bgp.Route{
		{Prefix: netip.MustParsePrefix("20.1.0.0/16"), Hops: []netip.Addr{a, b}},
		{Prefix: netip.MustParsePrefix("20.2.0.0/16"), Hops: []netip.Addr{b}},
	}
	one, both := ofnet.HopSetID([]netip.Addr{b}), ofnet.HopSetID([]netip.Addr{a, b})
	onlyA := ofnet.HopSetID([]netip.Addr{a})
	route := func(prefix string, hops uint32) ofnet.Route {
		return ofnet.Route{Prefix: netip.MustParsePrefix(prefix), Hops: hops}
	}
	for _, c := range []struct {
		name    string
		macs    map[netip.Addr]ofnet.MAC
		routes  []ofnet.Route
		hops    map[uint32]string
		unknown int
	}{
		{"none is known", nil, nil, map[uint32]string{}, 2},
		{"one is", map[netip.Addr]ofnet.MAC{a: macA}, []ofnet.Route{route("20.1.0.0/16", onlyA)}, map[uint32]string{onlyA: string(macA[:])}, 1},
		{
			"both are",
			map[netip.Addr]ofnet.MAC{a: macA, b: macB},
			[]ofnet.Route{route("20.1.0.0/16", both), route("20.2.0.0/16", one)},
			map[uint32]string{both: string(macA[:]) + string(macB[:]), one: string(macB[:])},
			0,
		},
		{
			"one has moved",
			map[netip.Addr]ofnet.MAC{a: macB, b: macB},
			[]ofnet.Route{route("20.1.0.0/16", both), route("20.2.0.0/16", one)},
			map[uint32]string{both: string(macB[:]) + string(macB[:]), one: string(macB[:])},
			0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			flows, unknown := routeFlows(p, routes, c.macs)
			var gotRoutes []ofnet.Route
			gotHops := map[uint32]string{}
			for _, key := range []string{"route/20.1.0.0/16", "route/20.2.0.0/16"} {
				if f, ok := flows[key]; ok {
					gotRoutes = append(gotRoutes, f.route)
				}
			}
			for _, f := range flows {
				if f.hops != 0 {
					gotHops[f.hops] = f.macs
				}
			}
			if diff := cmp.Diff(c.routes, gotRoutes, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.hops, gotHops); diff != "" {
				t.Errorf("next hops (-want +got):\n%s", diff)
			}
			if len(unknown) != c.unknown {
				t.Errorf("unknown next hops %v, want %d", unknown, c.unknown)
			}
			for key, f := range flows {
				if program := f.program(); len(program.Flows) != 1 {
					t.Errorf("%s is %d flows, want one", key, len(program.Flows))
				}
			}
		})
	}
}
