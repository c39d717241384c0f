package bgp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"pgregory.net/rapid"
)

// path is a path to 20.1.0.0/16 as the library lists it.
type path struct {
	peer, hop, linkLocal string
	as                   uint32 // of the peer, default 500
	asPath               []uint32
	med, pref            uint32
}

func (p path) native(t rapid.TB) *apiutil.Path {
	t.Helper()
	out := &apiutil.Path{PeerASN: max(p.as, 500)}
	if p.peer != "" {
		out.PeerAddress = netip.MustParseAddr(p.peer)
	}
	if p.as != 0 {
		out.PeerASN = p.as
	}
	hop := netip.MustParseAddr(p.hop)
	if hop.Is4() {
		a, err := bgp.NewPathAttributeNextHop(hop)
		if err != nil {
			t.Fatal(err)
		}
		out.Attrs = append(out.Attrs, a)
	} else {
		a := &bgp.PathAttributeMpReachNLRI{Nexthop: hop}
		if p.linkLocal != "" {
			a.LinkLocalNexthop = netip.MustParseAddr(p.linkLocal)
		}
		out.Attrs = append(out.Attrs, a)
	}
	if p.asPath != nil {
		out.Attrs = append(out.Attrs, bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, p.asPath)}))
	}
	if p.med != 0 {
		out.Attrs = append(out.Attrs, bgp.NewPathAttributeMultiExitDisc(p.med))
	}
	if p.pref != 0 {
		out.Attrs = append(out.Attrs, bgp.NewPathAttributeLocalPref(p.pref))
	}
	return out
}

func TestRouteOfPaths(t *testing.T) {
	const a, b = "50.1.1.200", "50.1.1.201"
	for _, c := range []struct {
		name  string
		paths []path
		want  []string // next hops; nil for no route
	}{
		{"one", []path{{peer: a, hop: a}}, []string{a}},
		{"two that are equal", []path{{peer: b, hop: b}, {peer: a, hop: a}}, []string{a, b}},
		{"two by one next hop", []path{{peer: a, hop: "50.1.1.7"}, {peer: b, hop: "50.1.1.7"}}, []string{"50.1.1.7"}},
		{"a longer way", []path{{peer: a, hop: a, asPath: []uint32{500}}, {peer: b, hop: b, asPath: []uint32{500, 600}}}, []string{a}},
		{"equally long ways", []path{{peer: a, hop: a, asPath: []uint32{500, 700}}, {peer: b, hop: b, asPath: []uint32{500, 600}}}, []string{a, b}},
		{"a worse metric", []path{{peer: a, hop: a, med: 5}, {peer: b, hop: b, med: 6}}, []string{a}},
		{"less preferred", []path{{peer: a, hop: a, pref: 200}, {peer: b, hop: b}}, []string{a}},
		{"preferred as by default", []path{{peer: a, hop: a, pref: 100}, {peer: b, hop: b}}, []string{a, b}},
		{"external and internal", []path{{peer: a, hop: a}, {peer: b, hop: b, as: 65002}}, []string{a}},
		{"a next hop beyond the link", []path{{peer: a, hop: "60.1.1.1"}}, []string{a}},
		{"IPv6", []path{{peer: a, hop: "2001:db8:50::c8"}}, []string{"2001:db8:50::c8"}},
		{"IPv6 with a link-local address, too", []path{{peer: a, hop: "2001:db8:50::c8", linkLocal: "fe80::1"}}, []string{"2001:db8:50::c8"}},
		{"IPv6 of another link", []path{{peer: a, hop: "2001:db8:60::1", linkLocal: "fe80::1"}}, []string{"fe80::1"}},
		{"IPv6 by an IPv4 address", []path{{peer: a, hop: "::ffff:50.1.1.200"}}, []string{a}},
		{"by this host", []path{{peer: a, hop: "50.1.1.2"}}, nil},
		{"the host's own", []path{{hop: "50.1.1.2"}, {peer: a, hop: a}}, nil},
		{"none", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := whole()
			var paths []*apiutil.Path
			for _, p := range c.paths {
				paths = append(paths, p.native(t))
			}
			r, ok := cfg.route(netip.MustParsePrefix("20.1.0.0/16"), paths)
			var got []string
			for _, h := range r.Hops {
				got = append(got, h.String())
			}
			if ok != (c.want != nil) || !slices.Equal(got, c.want) {
				t.Errorf("next hops %v (%t), want %v", got, ok, c.want)
			}
		})
	}
}

// Whatever neighbors send, next hops are on the link, sorted, unique, never the host
// itself, and independent of the order of equal paths.
func TestNextHopsAreOnTheLink(t *testing.T) {
	cfg := whole()
	addr := rapid.SampledFrom([]string{"50.1.1.2", "50.1.1.200", "50.1.1.201", "60.1.1.1", "0.0.0.0", "2001:db8:50::c8", "2001:db8:50::2", "fe80::1", "::", "::ffff:50.1.1.7"})
	rapid.Check(t, func(t *rapid.T) {
		var paths []*apiutil.Path
		for range rapid.IntRange(1, 30).Draw(t, "paths") {
			paths = append(paths, path{peer: addr.Draw(t, "peer"), hop: addr.Draw(t, "hop")}.native(t))
		}
		r, ok := cfg.route(netip.MustParsePrefix("20.1.0.0/16"), paths)
		if !ok {
			return
		}
		if !slices.IsSortedFunc(r.Hops, netip.Addr.Compare) || len(slices.Compact(slices.Clone(r.Hops))) != len(r.Hops) || len(r.Hops) > maxHops {
			t.Errorf("next hops %v are not a sorted set", r.Hops)
		}
		for _, h := range r.Hops {
			if h == cfg.Router.Addr() || h == cfg.Router6.Addr() || h.Is4In6() {
				t.Errorf("next hop %s", h)
			}
		}
	})
}

func TestOffered(t *testing.T) {
	for _, c := range []struct {
		name string
		caps []bgp.ParameterCapabilityInterface
		want []bgp.Family
	}{
		{"nothing said", nil, []bgp.Family{bgp.RF_IPv4_UC}},
		{"both", []bgp.ParameterCapabilityInterface{bgp.NewCapMultiProtocol(bgp.RF_IPv4_UC), bgp.NewCapMultiProtocol(bgp.RF_IPv6_UC)}, []bgp.Family{bgp.RF_IPv4_UC, bgp.RF_IPv6_UC}},
		{"others, too", []bgp.ParameterCapabilityInterface{bgp.NewCapRouteRefresh(), bgp.NewCapMultiProtocol(bgp.RF_EVPN), bgp.NewCapMultiProtocol(bgp.RF_IPv6_UC)}, []bgp.Family{bgp.RF_IPv6_UC}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := offered(c.caps); !slices.Equal(got, c.want) {
				t.Errorf("offered %v, want %v", got, c.want)
			}
		})
	}
}
