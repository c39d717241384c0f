package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// frames permits containers to send IP and ARP only, and no messages of routers, DHCP
// servers and switches: in the bridge modes the physical network would act on them. Frames
// of link protocols (STP, LLDP, pause) and of encapsulations that policies cannot inspect
// (MPLS, PPPoE) are dropped.
//
// Containers that may use others' addresses may also be routers.
type frames struct{}

func (frames) id() uint8       { return featureFrame }
func (frames) tables() []table { return []table{tableFrame} }

// Protocols and ports of routing protocols (IANA).
const (
	protoIGMP  = 2
	protoEIGRP = 88
	protoOSPF  = 89
	protoPIM   = 103
	protoVRRP  = 112 // CARP too

	portRIP, portRIPng   = 520, 521
	portHSRP, portHSRPv6 = 1985, 2029
	portGLBP             = 3222
)

// dhcpv6ServerPort is the source port of servers (RFC 8415 section 7.2).
const dhcpv6ServerPort = 547

var (
	multicast4 = netip.MustParsePrefix("224.0.0.0/4")
	allHosts4  = netip.MustParseAddr("224.0.0.1") // general queries (RFC 2236, RFC 3376)
)

func (f frames) part(p *Pipeline, o Object) part {
	switch o.(type) {
	case Base:
		return part{rows: f.base(p)}
	}
	return part{}
}

func (frames) base(p *Pipeline) []row {
	next := goTo(p.next(tableFrame))
	rows := []row{
		{tableFrame, prioGeneral, of.NewMatch().ARP(arpRequest), next},
		{tableFrame, prioGeneral, of.NewMatch().ARP(arpReply), next},
	}
	for _, family := range families {
		rows = append(rows, row{tableFrame, prioGeneral, family, next})
	}
	if p.set.logs() {
		rows = append(rows, row{tableFrame, prioMiss, of.NewMatch(), p.deny(DeniedByFrame)})
	}
	if p.set.AllowSpoofing {
		return rows
	}
	router := []of.Match{
		of.NewMatch().IPProto(of.ProtoUDP).IP().With(of.FieldUDPSrc.Is(dhcpServerPort)),
		of.NewMatch().IPProto(of.ProtoUDP).IPv6().With(of.FieldUDPSrc.Is(dhcpv6ServerPort)),
		of.NewMatch().ICMPv4(icmpv4Redirect), of.NewMatch().ICMPv4(icmpv4RouterAdvert),
		of.NewMatch().IP().IPProto(protoIGMP).IPv4Dst(host(allHosts4)),
	}
	for _, typ := range []uint8{icmpv6ListenerQuery, icmpv6RouterAdvert, icmpv6Redirect, icmpv6RouterDiscovery} {
		router = append(router, of.NewMatch().ICMPv6(typ))
	}
	for _, proto := range []uint8{protoEIGRP, protoOSPF, protoPIM, protoVRRP} {
		for _, family := range families {
			router = append(router, family.IPProto(proto))
		}
	}
	for _, port := range []uint16{portRIP, portHSRP, portGLBP} {
		router = append(router, of.NewMatch().IP().IPProto(of.ProtoUDP).IPv4Dst(multicast4).UDPDst(port))
	}
	for _, port := range []uint16{portRIPng, portHSRPv6, portGLBP} {
		router = append(router, of.NewMatch().IPv6().IPProto(of.ProtoUDP).IPv6Dst(multicast6).UDPDst(port))
	}
	for _, m := range router {
		rows = append(rows, row{tableFrame, prioNormal, m, p.deny(DeniedByFrame)})
	}
	return rows
}
