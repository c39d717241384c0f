package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// Route is a prefix with the next hops that are equally good, all on the speaker's
// link, sorted.
type Route struct {
	Prefix netip.Prefix
	Hops   []netip.Addr
}

// maxHops bounds the next hops of a route.
const maxHops = 16

// rank is what two paths must have in common to share the traffic (RFC 4271 section
// 9.1.2.2, as far as it does not pick one of several for the sake of a decision).
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

// hopOf is the next hop of a path. A next hop that is not on the link is known to the
// neighbour who told of it.
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

// route picks the next hops among the known paths of a prefix, the best of which is
// first. ok is false when there is none but this host itself.
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

// prefixOf reads an NLRI of unicast routes; the zero value for any other.
func prefixOf(n bgp.NLRI) netip.Prefix {
	if p, ok := n.(*bgp.IPAddrPrefix); ok {
		return p.Prefix
	}
	return netip.Prefix{}
}
