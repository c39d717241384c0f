package ovsd

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// discardPort is where a peer throws our datagram away (RFC 863).
const discardPort = 9

// warmUp has the host resolve a peer's Ethernet address before the first container
// needs it. The userspace datapath resolves tunnel neighbours itself and drops the
// packet that made it ask; it learns from the answers to the host's own questions. A
// host that knows the peer already, from having been asked by it, would ask nothing:
// it is made to forget.
func warmUp(vtep, peer netip.Addr) {
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: vtep.AsSlice()}, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, discardPort)))
	if err != nil {
		return // the address is not this host's own, or there is no route yet
	}
	defer conn.Close()
	if link := linkWithAddr(vtep); link != nil {
		_ = netlink.NeighDel(&netlink.Neigh{LinkIndex: link.Attrs().Index, IP: peer.AsSlice()}) // it may know none
	}
	_, _ = conn.Write([]byte("contiv"))
}
