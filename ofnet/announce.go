package ofnet

import (
	"context"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// Announcement makes the packets that announce an endpoint to its segment: a gratuitous ARP
// request (RFC 5227 section 3) for its IPv4 address, and an unsolicited neighbor
// advertisement (RFC 4861 section 7.2.6) for its IPv6 address. They are sent as if the
// endpoint had sent them from port, its OpenFlow port, through the bridge's normal
// switching, so that they get the port's VLAN and use the active member of a bond.
func Announcement(mac MAC, ipv4, ipv6 netip.Addr, port uint32) ([]of.Message, error) {
	var frames [][]gopacket.SerializableLayer
	from := net.HardwareAddr(mac[:])
	if ipv4.IsValid() {
		frames = append(frames, []gopacket.SerializableLayer{
			&layers.Ethernet{SrcMAC: from, DstMAC: layers.EthernetBroadcast, EthernetType: layers.EthernetTypeARP},
			&layers.ARP{
				AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
				SourceHwAddress: from, SourceProtAddress: ipv4.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: ipv4.AsSlice(),
			},
		})
	}
	if ipv6.IsValid() {
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: ipv6.AsSlice(), DstIP: net.IPv6linklocalallnodes}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(icmpv6NeighborAdvert, 0)}
		if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
			return nil, errs.Wrap(errs.Internal, err)
		}
		const override = 0x20
		frames = append(frames, []gopacket.SerializableLayer{
			&layers.Ethernet{SrcMAC: from, DstMAC: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv6},
			ip, icmp,
			&layers.ICMPv6NeighborAdvertisement{
				Flags: override, TargetAddress: ipv6.AsSlice(), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: from}},
			},
		})
	}
	out := make([]of.Message, 0, len(frames))
	for _, frame := range frames {
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, frame...); err != nil {
			return nil, errs.Wrap(errs.Internal, err)
		}
		out = append(out, &of.PacketOut{InPort: port, Actions: of.NewActions().Normal(), Data: buf.Bytes()})
	}
	return out, nil
}

// Inject has the bridge send packets, each a *of.PacketOut, and returns when it has. It
// does not wait for a connection: without one the error's kind is Unavailable.
func (s *Switch) Inject(ctx context.Context, packets []of.Message) error {
	s.mu.Lock()
	ch, synced := s.channel, s.synced
	s.mu.Unlock()
	if ch == nil || !synced {
		return errs.New(errs.Unavailable, "bridge %s: no OpenFlow connection", s.cfg.Name)
	}
	return ch.Send(ctx, packets)
}
