package ovsd

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// discardPort is where a peer throws our datagram away (RFC 863).
const discardPort = 9

// SetPeers tells the driver the tunnel addresses of the other hosts. Forwarding does
// not depend on them: it follows the endpoints.
func (d *Driver) SetPeers(peers []netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range peers {
		if d.tunnelUp && !slices.Contains(d.peers, p) {
			d.warmUp(p)
		}
	}
	d.peers = slices.Clone(peers)
}

// warmUp has the host resolve a peer's Ethernet address before the first container
// needs it. The userspace datapath resolves tunnel neighbours itself and drops the
// packet that made it ask; it learns from the answers to the host's own questions. A
// host that knows the peer already, from having been asked by it, would ask nothing:
// it is made to forget.
func (d *Driver) warmUp(peer netip.Addr) {
	if d.kernelBridge(VXLANBridge) {
		return
	}
	local := &net.UDPAddr{IP: d.cfg.VTEP.AsSlice()}
	conn, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, discardPort)))
	if err != nil {
		return // the address is not this host's own, or there is no route yet
	}
	defer conn.Close()
	if link := linkWithAddr(d.cfg.VTEP); link != nil {
		_ = netlink.NeighDel(&netlink.Neigh{LinkIndex: link.Attrs().Index, IP: peer.AsSlice()}) // it may know none
	}
	_, _ = conn.Write([]byte("contiv"))
}
