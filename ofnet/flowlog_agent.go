package ofnet

import (
	"context"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// DeniedPacket is a packet that was denied, as far as its headers tell. Everything in it
// is the sender's word except Port, Tunnel, VRF and what denied it.
type DeniedPacket struct {
	By       Denial
	Number   uint32 // of the rule, if By is DeniedByRule
	Rejected bool   // the sender was told

	Port    uint32     // OpenFlow port it came from
	Tunnel  netip.Addr // tunnel address it came from, if it did
	VRF     uint16     // 0 if it was denied before that was known
	Segment uint32     // the network, likewise

	EthType  uint16
	Proto    uint8 // IP protocol
	Src, Dst netip.AddrPort
	ICMP     uint16 // type << 8 | code
	// Frontend and VIP are the service that it was for: its number and address.
	Frontend uint32
	VIP      netip.Addr
}

// parseDenied reads a packet from the denied or the reject table.
func parseDenied(in *of.PacketIn) *DeniedPacket {
	d := &DeniedPacket{Port: in.InPort()}
	number := func(f of.Field) uint64 {
		v, _ := in.Match.Get(f)
		return v.Uint64()
	}
	mark := number(of.FieldMetadata)
	if by := Denial(mark >> metadataKind & 0xff); by < numDenials {
		d.By, d.Number = by, uint32(mark)
	}
	d.VRF, d.Segment = uint16(number(regVRF.field())), uint32(number(regSegment.field()))
	for _, f := range []of.Field{of.FieldTunSrc, of.FieldTunIPv6Src} {
		if v, ok := in.Match.Get(f); ok {
			d.Tunnel = v.Addr()
		}
	}
	packet := gopacket.NewPacket(in.Data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	d.headers(packet)
	if d.Frontend = uint32(number(regService.field())); d.Frontend != 0 {
		if v, ok := in.Match.Get(regVIP.field()); ok && d.Src.Addr().Is4() {
			raw := uint32(v.Uint64())
			d.VIP = netip.AddrFrom4([4]byte{byte(raw >> 24), byte(raw >> 16), byte(raw >> 8), byte(raw)})
		} else if d.Src.Addr().Is6() {
			d.VIP = vip6(number)
		}
	}
	return d
}

// vip6 is the IPv6 address in the registers from regVIP.
func vip6(number func(of.Field) uint64) netip.Addr {
	var b [16]byte
	for i := range 4 {
		word := uint32(number((regVIP + register(i)).field()))
		b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(word>>24), byte(word>>16), byte(word>>8), byte(word)
	}
	return netip.AddrFrom16(b)
}

func (d *DeniedPacket) headers(packet gopacket.Packet) {
	var src, dst netip.Addr
	var sport, dport uint16
	for _, layer := range packet.Layers() {
		switch l := layer.(type) {
		case *layers.Ethernet:
			d.EthType = uint16(l.EthernetType)
		case *layers.Dot1Q:
			d.EthType = uint16(l.Type)
		case *layers.ARP:
			src, dst = addrOf(l.SourceProtAddress), addrOf(l.DstProtAddress)
		case *layers.IPv4:
			src, dst, d.Proto = addrOf(l.SrcIP), addrOf(l.DstIP), uint8(l.Protocol)
		case *layers.IPv6:
			src, dst, d.Proto = addrOf(l.SrcIP), addrOf(l.DstIP), uint8(l.NextHeader)
		case *layers.IPv6Destination:
			d.Proto = uint8(l.NextHeader)
		case *layers.IPv6Routing:
			d.Proto = uint8(l.NextHeader)
		case *layers.IPv6Fragment:
			d.Proto = uint8(l.NextHeader)
		case *layers.TCP:
			sport, dport = uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.UDP:
			sport, dport = uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.SCTP:
			sport, dport = uint16(l.SrcPort), uint16(l.DstPort)
		case *layers.ICMPv4:
			d.ICMP = uint16(l.TypeCode)
		case *layers.ICMPv6:
			d.ICMP = uint16(l.TypeCode)
		}
	}
	d.Src, d.Dst = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
}

func addrOf(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Withheld counts the packets that the log was not told of, by meter and since that was made:
// those that were above the rates of denied and of rejected packets.
func (s *Switch) Withheld(ctx context.Context) (map[uint32]uint64, error) {
	meters, err := s.meterStats(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[uint32]uint64{}
	for _, m := range meters {
		if m.ID == rejectMeter || m.ID >= firstLogMeter && m.ID <= tunnelLogMeter || m.ID >= firstAgentMeter && m.ID < firstAgentMeter+portMeters {
			for _, band := range m.Bands {
				counts[m.ID] += band.Packets
			}
		}
	}
	return counts, nil
}
