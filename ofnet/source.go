package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// sourceGuard lets a container send under its own addresses only: Ethernet, IPv4,
// IPv6, and those inside ARP and neighbour discovery. Otherwise a container could take
// its neighbours' traffic, or pass for a member of another group.
//
// A link-local IPv6 address may be any: hosts choose it themselves (RFC 7217), and it
// is of no use beyond the link, where the MAC address tells who it is. Without an
// address a container may ask for one (DHCP, duplicate address detection, RFC 4862).
type sourceGuard struct{ noRows }

func (sourceGuard) id() uint8       { return featureSource }
func (sourceGuard) tables() []table { return []table{tableSource, tableSourceND} }

var (
	linkLocal6 = netip.MustParsePrefix("fe80::/10")
	noMAC      = of.FieldNDSLL.IsMAC(MAC{}) // what a solicitation without the option reads as
)

// Ports of DHCP (RFC 2131 section 4.1).
const dhcpServerPort, dhcpClientPort = 67, 68

func (sourceGuard) fixed(p *Pipeline) []row {
	next := goTo(p.to(tableNeighbour))
	return []row{
		{tableSource, prioGeneral, of.NewMatch().EthType(ethTypeARP), drop},
		{tableSource, prioGeneral, of.NewMatch().IP(), drop},
		{tableSource, prioGeneral, of.NewMatch().IPv6(), drop},
		{tableSourceND, prioNormal, of.NewMatch().ICMPv6(icmpv6NeighborSolicit).With(noMAC), next},
		{tableSourceND, prioGeneral, of.NewMatch().ICMPv6(icmpv6NeighborSolicit), drop},
		{tableSourceND, prioGeneral, of.NewMatch().ICMPv6(icmpv6NeighborAdvert), drop},
		{tableSourceND, prioMiss, of.NewMatch(), next},
	}
}

func (sourceGuard) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	next, nd := goTo(p.to(tableNeighbour)), goTo(p.to(tableSourceND))
	port := of.NewMatch().InPort(e.Port)
	own := port.EthSrc(e.MAC)
	none4, none6 := host(netip.IPv4Unspecified()), host(netip.IPv6Unspecified())
	rows := []row{
		{tableSource, prioMiss + 1, own, next}, // neither ARP nor IP
		{tableSource, prioNormal, own.ARP(arpRequest).ARPSHA(e.MAC).ARPSPA(none4), next},
		{tableSource, prioNormal, own.IPProto(of.ProtoUDP).IP().IPv4Src(none4).
			With(of.FieldUDPSrc.Is(dhcpClientPort)).UDPDst(dhcpServerPort), next},
		{tableSource, prioNormal, own.IPv6().IPv6Src(linkLocal6), nd},
		{tableSourceND, prioNormal, port.ICMPv6(icmpv6NeighborSolicit).With(of.FieldNDSLL.IsMAC(e.MAC)), next},
	}
	for _, typ := range []uint8{icmpv6NeighborSolicit, icmpv6RouterSolicit, icmpv6ListenerReport} {
		rows = append(rows, row{tableSource, prioNormal, own.ICMPv6(typ).IPv6Src(none6), nd})
	}
	targets := []netip.Prefix{linkLocal6}
	if e.IPv4.IsValid() {
		rows = append(rows,
			row{tableSource, prioNormal, own.EthType(ethTypeARP).ARPSHA(e.MAC).ARPSPA(host(e.IPv4)), next},
			row{tableSource, prioNormal, own.IP().IPv4Src(host(e.IPv4)), next})
	}
	if e.IPv6.IsValid() {
		rows = append(rows, row{tableSource, prioNormal, own.IPv6().IPv6Src(host(e.IPv6)), nd})
		targets = append(targets, host(e.IPv6))
	}
	for _, target := range targets {
		advert := port.ICMPv6(icmpv6NeighborAdvert).With(of.FieldNDTarget.IsPrefix(target))
		rows = append(rows,
			row{tableSourceND, prioNormal, advert.With(of.FieldNDTLL.IsMAC(e.MAC)), next},
			row{tableSourceND, prioNormal, advert.With(of.FieldNDTLL.IsMAC(MAC{})), next})
	}
	return rows
}
