package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// RouterPort is the port with which the host itself takes part in the link beyond the
// uplinks: it speaks BGP there, and resolves neighbors for the containers.
type RouterPort struct {
	Port  uint32
	Addrs []netip.Addr // of the host on that link
	// Neighbors are its BGP neighbors, with TCP port BGP at either end.
	Neighbors []BGPNeighbor
	BGP       uint16
}

// BGPNeighbor is a router that the host has a session with.
type BGPNeighbor struct {
	Addr netip.Addr
	// TTLSecurity accepts its segments only with a TTL of 255, which no packet has that
	// has passed a router (RFC 5082).
	TTLSecurity bool
}

// port connects the host itself to the link. It accepts only what a router needs: neighbor
// resolution from everybody, BGP and ICMP from its neighbors. The host's other services are
// reached through other networks.
func (uplinkRouter) port(p *Pipeline, r RouterPort) []row {
	toHost := apply(of.NewActions().Output(r.Port))
	untagged := of.NewMatch().VLANUntagged()
	rows := []row{
		{tableClassify, prioNormal, of.NewMatch().InPort(r.Port), goTo(p.to(tableUplinkOut))},
		{tableUplink, prioNormal, untagged.EthType(ethTypeARP), toHost},
		{tableUplink, prioNormal, untagged.ICMPv6(icmpv6NeighborSolicit), toHost},
		{tableUplink, prioNormal, untagged.ICMPv6(icmpv6NeighborAdvert), toHost},
		{tableUplink, prioNotTaken, untagged.IPv6().IPv6Dst(linkLocal6), drop},
		// The host gets routes from BGP only.
		{tableUplink, prioDrop, untagged.ICMPv4(icmpv4Redirect), drop},
		{tableUplink, prioDrop, untagged.ICMPv6(icmpv6RouterAdvert), drop},
		{tableUplink, prioDrop, untagged.ICMPv6(icmpv6Redirect), drop},
	}
	for _, family := range []of.Match{untagged.IP(), untagged.IPv6()} {
		rows = append(rows, row{tableUplink, prioGeneral, family.EthDst(p.set.HostMAC), goTo(p.to(tableRoute))})
	}
	for _, a := range r.Addrs {
		rows = append(rows, row{tableUplink, prioNotTaken, untagged.Dst(host(a)), drop})
	}
	for _, n := range r.Neighbors {
		for _, to := range r.prefixes(n.Addr) {
			for _, m := range r.allowed(n, untagged.Src(host(n.Addr)).Dst(to)) {
				rows = append(rows, row{tableUplink, prioSpecific, m, toHost})
			}
		}
	}
	return rows
}

// prefixes are the addresses at which a neighbor may reach the host.
func (r RouterPort) prefixes(neighbor netip.Addr) []netip.Prefix {
	var to []netip.Prefix
	for _, a := range r.Addrs {
		if a.Is4() == neighbor.Is4() {
			to = append(to, host(a))
		}
	}
	if neighbor.Is6() {
		to = append(to, linkLocal6)
	}
	return to
}

// TCP flags (RFC 9293 section 3.1).
const tcpSYN, tcpACK = 0x02, 0x10

// allowed narrows down what the host accepts from a neighbor. In a session that the host
// has opened, the other end may send anything but a SYN: otherwise its BGP port could
// connect to all ports of the host.
func (r RouterPort) allowed(n BGPNeighbor, from of.Match) []of.Match {
	icmp := from.IPProto(of.ProtoICMP)
	if n.Addr.Is6() {
		icmp = from.IPProto(of.ProtoICMPv6)
	}
	tcp := from.IPProto(of.ProtoTCP)
	if n.TTLSecurity {
		tcp = tcp.With(of.FieldIPTTL.Is(maxTTL))
	}
	answers := tcp.With(of.FieldTCPSrc.Is(uint64(r.BGP)))
	return []of.Match{
		icmp,
		tcp.TCPDst(r.BGP),
		answers.With(of.FieldTCPFlags.IsMasked(0, tcpSYN)),
		answers.With(of.FieldTCPFlags.IsMasked(tcpSYN|tcpACK, tcpSYN|tcpACK)),
	}
}

// prioNotTaken drops what the host does not accept, before it can go on to containers.
const prioNotTaken = prioGeneral + 1

// maxTTL is the TTL of packets that have not passed a router.
const maxTTL = 255
