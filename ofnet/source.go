package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// sourceCheck permits a container to send from its own addresses only: Ethernet, IPv4,
// IPv6, and those inside ARP and neighbor discovery. Otherwise a container could take its
// neighbors' traffic, or pose as a member of another group.
//
// Its link-local IPv6 address is the one derived from its MAC address (see LinkLocal): any
// other is unknown here. Without an address a container may ask for one (DHCP), and check
// whether its own is free (RFC 4862, RFC 5227).
//
// Open vSwitch treats a neighbor discovery message with a repeated option, or any other
// malformed one, as one without target; those are dropped.
type sourceCheck struct{}

func (sourceCheck) id() uint8       { return featureSource }
func (sourceCheck) tables() []table { return []table{tableSource, tableSourceND} }

var (
	linkLocal6 = netip.MustParsePrefix("fe80::/10")
	noTarget   = of.FieldNDTarget.IsPrefix(host(netip.IPv6Unspecified()))
	noMAC      = of.FieldNDSLL.IsMAC(MAC{}) // what a solicitation without the option is parsed as
)

// Ports of DHCP (RFC 2131 section 4.1).
const dhcpServerPort, dhcpClientPort = 67, 68

// LinkLocal is the link-local address that an interface derives from its MAC address (RFC
// 4291 appendix A).
func LinkLocal(m MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

func (f sourceCheck) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	}
	return part{}
}

func (sourceCheck) base(p *Pipeline) []row {
	next, spoofed := goTo(p.to(tableNeighbor)), p.deny(DeniedBySource)
	return append(exactSpoofedND(p), []row{
		{tableSource, prioGeneral, of.NewMatch().EthType(ethTypeARP), spoofed},
		{tableSource, prioGeneral, of.NewMatch().IP(), spoofed},
		{tableSource, prioGeneral, of.NewMatch().IPv6(), spoofed},
		{tableSourceND, prioSpecific, of.NewMatch().ICMPv6(icmpv6NeighborSolicit).With(noTarget), spoofed},
		{tableSourceND, prioNormal, of.NewMatch().ICMPv6(icmpv6NeighborSolicit).With(noMAC), next},
		{tableSourceND, prioGeneral, of.NewMatch().ICMPv6(icmpv6NeighborSolicit), spoofed},
		{tableSourceND, prioGeneral, of.NewMatch().ICMPv6(icmpv6NeighborAdvert), spoofed},
		{tableSourceND, prioMiss, of.NewMatch(), next},
	}...)
}

func (sourceCheck) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	next, nd := goTo(p.to(tableNeighbor)), goTo(p.to(tableSourceND))
	port := of.NewMatch().InPort(e.Port)
	own := port.EthSrc(e.MAC)
	none4, none6 := host(netip.IPv4Unspecified()), host(netip.IPv6Unspecified())
	rows := []row{
		{tableSource, prioNormal, own.IPProto(of.ProtoUDP).IP().IPv4Src(none4).
			With(of.FieldUDPSrc.Is(dhcpClientPort)).UDPDst(dhcpServerPort), next},
		{tableSourceND, prioNormal, port.ICMPv6(icmpv6NeighborSolicit).With(of.FieldNDSLL.IsMAC(e.MAC)), next},
	}
	for _, typ := range []uint8{icmpv6RouterSolicit, icmpv6ListenerReport, icmpv6ListenerReport1, icmpv6ListenerDone} { // RFC 3590
		rows = append(rows, row{tableSource, prioNormal, own.ICMPv6(typ).IPv6Src(none6), next})
	}
	probe := own.ARP(arpRequest).ARPSHA(e.MAC).ARPSPA(none4)
	if e.IPv4.IsValid() {
		probe = probe.ARPTPA(host(e.IPv4))
	}
	rows = append(rows, row{tableSource, prioNormal, probe, next})
	addrs := []netip.Addr{LinkLocal(e.MAC)}
	if e.IPv6.IsValid() {
		addrs = append(addrs, e.IPv6)
	}
	if e.IPv4.IsValid() {
		rows = append(rows,
			row{tableSource, prioNormal, own.EthType(ethTypeARP).ARPSHA(e.MAC).ARPSPA(host(e.IPv4)), next},
			row{tableSource, prioNormal, own.IP().IPv4Src(host(e.IPv4)), next})
	}
	for _, a := range addrs {
		target := of.FieldNDTarget.IsPrefix(host(a))
		advert := port.ICMPv6(icmpv6NeighborAdvert).With(target)
		rows = append(rows,
			row{tableSource, prioNormal, own.IPv6().IPv6Src(host(a)), nd},
			row{tableSource, prioNormal, own.ICMPv6(icmpv6NeighborSolicit).IPv6Src(none6).With(target), nd},
			row{tableSourceND, prioNormal, advert.With(of.FieldNDTLL.IsMAC(e.MAC)), next},
			row{tableSourceND, prioNormal, advert.With(of.FieldNDTLL.IsMAC(MAC{})), next})
	}
	return rows
}
