package ovsd

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// discardPort is where a peer discards our datagram (RFC 863).
const discardPort = 9

// warmUp has the host resolve a peer's Ethernet address before the first container needs
// it. The userspace datapath resolves tunnel neighbors itself, and drops the packet that
// triggered it; but it learns from replies to the host's own requests. A host that already
// has an entry for the peer would send no request, so the entry is deleted first.
func warmUp(vtep, peer netip.Addr) {
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: vtep.AsSlice()}, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, discardPort)))
	if err != nil {
		return // not this host's address, or no route yet
	}
	defer conn.Close()
	if link := linkWithAddr(vtep); link != nil {
		_ = netlink.NeighDel(&netlink.Neigh{LinkIndex: link.Attrs().Index, IP: peer.AsSlice()}) // there may be no entry
	}
	_, _ = conn.Write([]byte("contiv"))
}
