package ofnet

import (
	"hash/fnv"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// HopSet is a set of next hops that share the traffic of a route.
type HopSet struct {
	ID   uint32 // from HopSetID
	MACs []MAC  // of those that are resolved
}

// Route is a route to an external prefix through a HopSet. Longer prefixes take precedence,
// and endpoints take precedence over all routes.
type Route struct {
	Prefix netip.Prefix // masked
	Hops   uint32       // the set's ID
}

// Values of regNextHop below firstHopSet.
const (
	hopNone     = 0
	hopEndpoint = 1 // the host of the endpoint, through the VLAN of its network
)

// Hop sets are numbered by a hash of their contents, in the top 32nd of the group numbers,
// so that an agent that starts finds the numbers of its predecessor in the switch.
const (
	firstHopSet = 0xf0000000
	hopSetBits  = 0x07ffffff
)

// HopSetID is the number of a set of next hops, independent of their order.
func HopSetID(hops []netip.Addr) uint32 {
	var sum uint32
	for _, a := range hops {
		h := fnv.New32a()
		b, _ := a.MarshalBinary() // netip's never fails
		_, _ = h.Write(b)
		sum += h.Sum32() | 1
	}
	return firstHopSet | sum&hopSetBits
}

// HostMAC is the MAC address of a host's router on the links of its uplinks. It is derived
// from the tunnel address, so that every host knows that of every other.
func HostMAC(vtep netip.Addr) MAC {
	m := MAC{0x02, 0x03}
	if vtep = vtep.Unmap(); vtep.Is4() {
		b := vtep.As4()
		copy(m[2:], b[:])
		return m
	}
	h := fnv.New32a()
	b, _ := vtep.MarshalBinary()
	_, _ = h.Write(b)
	copy(m[2:], h.Sum(nil))
	return m
}

// external routes packets to other destinations than endpoints through the next hops
// learned by BGP.
type external struct{}

func (external) id() uint8       { return featureExternal }
func (external) tables() []table { return []table{tableExternal} }

// notRouted are destinations that must not leave the link or the host.
var notRouted = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"), // multicast, reserved, broadcast
	netip.MustParsePrefix("::/127"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

func (f external) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Route:
		return part{rows: f.route(p, o)}
	case HopSet:
		rows, groups := f.hops(p, o)
		return part{rows: rows, groups: groups}
	}
	return part{}
}

func (external) base(p *Pipeline) []row {
	// Packets from outside do not go out again: hosts carry no transit traffic.
	rows := []row{{tableRoute, prioMiss + 1, of.NewMatch().With(regOrigin.is(originLocal)), goTo(p.to(tableReach))}}
	for _, dst := range notRouted {
		rows = append(rows, row{tableExternal, prioDrop, destination(dst), drop})
	}
	return rows
}

// destination matches packets to a prefix. Unlike a field match, it also works for /0.
func destination(dst netip.Prefix) of.Match {
	m := of.NewMatch().IP()
	if dst.Addr().Is6() {
		m = of.NewMatch().IPv6()
	}
	if dst.Bits() == 0 {
		return m
	}
	return m.Dst(dst)
}

func (external) route(p *Pipeline, r Route) []row {
	do := applyGoto(of.NewActions().SetField(regNextHop.is(r.Hops)), p.to(tableTrack))
	return []row{{tableExternal, prioMiss + 1 + uint16(r.Prefix.Bits()), destination(r.Prefix), do}}
}

// hops delivers to one of a set of next hops. All packets of a connection use the same one.
func (external) hops(p *Pipeline, h HopSet) (rows []row, groups []of.Group) {
	if len(h.MACs) == 0 {
		return nil, nil
	}
	m := of.NewMatch().With(regNextHop.is(h.ID))
	to := func(mac MAC) of.Actions { return of.NewActions().SetEthSrc(p.set.HostMAC).SetEthDst(mac) }
	if len(h.MACs) == 1 {
		return []row{{tableDeliver, prioSpecific, m, applyGoto(to(h.MACs[0]), p.to(tableUplinkOut))}}, nil
	}
	g := of.Group{ID: h.ID, Type: of.GroupTypeSelect}
	for _, mac := range h.MACs {
		g.Buckets = g.Buckets.AddWeighted(1, to(mac).Resubmit(p.to(tableUplinkOut)))
	}
	return []row{{tableDeliver, prioSpecific, m, apply(of.NewActions().Group(h.ID))}}, []of.Group{g}
}
