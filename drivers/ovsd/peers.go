package ovsd

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/ofnet"
)

// discardPort is where a peer throws our datagram away (RFC 863).
const discardPort = 9

// SetPeers tells the driver the tunnel addresses of the other hosts. What it sends
// follows the endpoints; from tunnels it takes only what these hosts send.
func (d *Driver) SetPeers(peers []netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.peers
	d.peers = make(map[netip.Addr]struct{}, len(peers))
	for _, p := range peers {
		d.peers[p] = struct{}{}
		if _, known := old[p]; !known {
			d.refreshPeer(p)
			if d.tunnelUp {
				d.warmUp(p)
			}
		}
	}
	for p := range old {
		if _, still := d.peers[p]; !still {
			d.sides[ofnet.VXLAN].sw.Remove(peerOwner(p))
		}
	}
}

func peerOwner(p netip.Addr) string { return "peer/" + p.String() }

// refreshPeer renews what lets a peer's packets in. The caller holds mu.
func (d *Driver) refreshPeer(p netip.Addr) {
	if s := d.sides[ofnet.VXLAN]; d.started && s.pipeline != nil {
		s.sw.Set(peerOwner(p), s.pipeline.Program(ofnet.Peer{VTEP: p}))
	}
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
