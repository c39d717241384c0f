package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// Route is a prefix with its equal-cost next hops, all on the speaker's link, sorted.
type Route struct {
	Prefix netip.Prefix
	Hops   []netip.Addr
}

// maxHops limits the next hops of a route.
const maxHops = 16

// rank is what paths must have in common to share the traffic (RFC 4271 section 9.1.2.2,
// without the tie-breakers that only pick one of several equal paths).
type rank struct {
	localPref, pathLen, origin, med uint32
	external                        bool
}

const defaultLocalPref = 100

func rankOf(p *apiutil.Path, external bool) rank {
	r := rank{localPref: defaultLocalPref, external: external}
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeLocalPref:
			r.localPref = a.Value
		case *bgp.PathAttributeAsPath:
			for _, segment := range a.Value {
				r.pathLen += uint32(segment.ASLen())
			}
		case *bgp.PathAttributeOrigin:
			r.origin = uint32(a.Value)
		case *bgp.PathAttributeMultiExitDisc:
			r.med = a.Value
		}
	}
	return r
}

// hopOf is the next hop of a path. If that is not on the link, the neighbor that sent the
// path is used.
func (c *Config) hopOf(p *apiutil.Path) netip.Addr {
	var hop netip.Addr
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeNextHop:
			hop = a.Value
		case *bgp.PathAttributeMpReachNLRI:
			hop = a.Nexthop
			if !c.onLink(hop.Unmap()) && a.LinkLocalNexthop.IsValid() {
				hop = a.LinkLocalNexthop
			}
		}
	}
	hop = hop.Unmap().WithZone("")
	if !hop.IsValid() || !c.onLink(hop) {
		hop = p.PeerAddress.Unmap().WithZone("")
	}
	return hop
}

// route picks the next hops from the known paths of a prefix, best path first. ok is false
// if the only path is through this host itself.
func (c *Config) route(prefix netip.Prefix, paths []*apiutil.Path) (r Route, ok bool) {
	if !prefix.IsValid() {
		return r, false
	}
	r.Prefix = prefix.Masked()
	var best rank
	for _, p := range paths {
		if !p.PeerAddress.IsValid() || p.PeerAddress.IsUnspecified() || p.IsNexthopInvalid {
			if len(r.Hops) == 0 { // the best path is the host's own
				return r, false
			}
			continue
		}
		hop := c.hopOf(p)
		if !hop.IsValid() || hop == c.Router.Addr() || hop == c.Router6.Addr() {
			continue // it came from this host
		}
		this := rankOf(p, p.PeerASN != c.AS)
		if len(r.Hops) == 0 {
			best = this
		} else if this != best {
			continue
		}
		if !slices.Contains(r.Hops, hop) && len(r.Hops) < maxHops {
			r.Hops = append(r.Hops, hop)
		}
	}
	slices.SortFunc(r.Hops, netip.Addr.Compare)
	return r, len(r.Hops) > 0
}

func sortRoutes(routes []Route) {
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
}

// prefixOf returns the prefix of a unicast route; the zero value for other NLRI.
func prefixOf(n bgp.NLRI) netip.Prefix {
	if p, ok := n.(*bgp.IPAddrPrefix); ok {
		return p.Prefix
	}
	return netip.Prefix{}
}
