package ofnet

import (
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// answerRejected makes the answer to a packet from the reject table: a reset for TCP (RFC
// 9293 section 3.10.7.1), an ICMP error for everything else (RFC 792, RFC 4443). It returns
// nil for resets, ICMP errors, and packets not addressed to a single receiver, which are
// never answered (RFC 1122 section 3.2.2).
func answerRejected(in *of.PacketIn) *of.PacketOut {
	packet := gopacket.NewPacket(in.Data, layers.LayerTypeEthernet, gopacket.NoCopy)
	eth, ok := packet.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !ok || eth.DstMAC[0]&multicastBit[0] != 0 {
		return nil
	}
	back := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: eth.DstMAC, DstMAC: eth.SrcMAC, EthernetType: eth.EthernetType}}
	if tag, ok := packet.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); ok {
		back = append(back, &layers.Dot1Q{VLANIdentifier: tag.VLANIdentifier, Type: tag.Type})
	}
	denied := false // by a rule; otherwise because there is no receiver
	if v, ok := in.Match.Get(regScratch.field()); ok {
		denied = v.Uint64() == rejectedByRule
	}
	answer := refusal(packet, denied)
	if answer == nil {
		return nil
	}
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if gopacket.SerializeLayers(buf, opts, append(back, answer...)...) != nil {
		return nil
	}
	a := of.NewActions().SetField(regOutPort.is(in.InPort()))
	if vrf, ok := in.Match.Get(regVRF.field()); ok {
		a = a.SetField(regVRF.is(uint32(vrf.Uint64())))
	}
	a = throughTunnel(a, in.Match)
	return &of.PacketOut{InPort: of.PortController, Actions: a.Resubmit(in.Table + 1), Data: buf.Bytes()}
}

// throughTunnel replies through the tunnel that a packet came from, if any.
func throughTunnel(a of.Actions, m of.Match) of.Actions {
	id, ok := m.Get(of.FieldTunID)
	if !ok {
		return a
	}
	a = a.SetTunID(id.Uint64())
	for _, f := range []of.Field{of.FieldTunSrc, of.FieldTunIPv6Src} {
		if v, ok := m.Get(f); ok {
			return toVTEP(a, v.Addr())
		}
	}
	return a
}

// refusal is the network layer and above of the answer.
func refusal(packet gopacket.Packet, denied bool) []gopacket.SerializableLayer {
	if tcp, ok := packet.Layer(layers.LayerTypeTCP).(*layers.TCP); ok {
		return reset(packet, tcp)
	}
	switch ip := packet.NetworkLayer().(type) {
	case *layers.IPv4:
		code := layers.ICMPv4TypeDestinationUnreachable
		if ip.FragOffset != 0 || isICMPError(packet) || !unicast(ip.SrcIP) || !unicast(ip.DstIP) {
			return nil
		}
		why := uint8(layers.ICMPv4CodePort)
		if denied {
			why = layers.ICMPv4CodeCommAdminProhibited
		}
		return []gopacket.SerializableLayer{
			&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: ip.DstIP, DstIP: ip.SrcIP},
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(uint8(code), why)},
			quote(ip, 576-28), // RFC 1812 section 4.3.2.3
		}
	case *layers.IPv6:
		if isICMPError(packet) || !unicast(ip.SrcIP) || !unicast(ip.DstIP) {
			return nil
		}
		why := uint8(layers.ICMPv6CodePortUnreachable)
		if denied {
			why = layers.ICMPv6CodeAdminProhibited
		}
		out := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: ip.DstIP, DstIP: ip.SrcIP}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeDestinationUnreachable, why)}
		if icmp.SetNetworkLayerForChecksum(out) != nil {
			return nil
		}
		return []gopacket.SerializableLayer{out, icmp, gopacket.Payload(append(make([]byte, 4), quote(ip, 1280-48)...))} // RFC 4443 section 3.1
	}
	return nil
}

// quote is the beginning of the packet that an error is about.
func quote(ip gopacket.Layer, most int) gopacket.Payload {
	all := append(append([]byte{}, ip.LayerContents()...), ip.LayerPayload()...)
	return all[:min(len(all), most)]
}

func unicast(ip net.IP) bool {
	return !ip.IsMulticast() && !ip.IsUnspecified() && !ip.Equal(net.IPv4bcast)
}

// isICMPError reports whether a packet is an ICMP message other than a request.
func isICMPError(packet gopacket.Packet) bool {
	if m, ok := packet.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); ok {
		return m.TypeCode.Type() != icmpv4EchoRequest
	}
	if m, ok := packet.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok {
		return m.TypeCode.Type() < icmpv6EchoRequest
	}
	return false
}

// reset answers a segment (RFC 9293 section 3.10.7.1).
func reset(packet gopacket.Packet, in *layers.TCP) []gopacket.SerializableLayer {
	if in.RST {
		return nil
	}
	out := &layers.TCP{SrcPort: in.DstPort, DstPort: in.SrcPort, RST: true}
	if in.ACK {
		out.Seq = in.Ack
	} else {
		out.ACK, out.Ack = true, in.Seq+uint32(len(in.Payload))
		if in.SYN {
			out.Ack++
		}
		if in.FIN {
			out.Ack++
		}
	}
	var ip gopacket.SerializableLayer
	switch layer := packet.NetworkLayer().(type) {
	case *layers.IPv4:
		l := &layers.IPv4{Version: 4, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolTCP, SrcIP: layer.DstIP, DstIP: layer.SrcIP}
		if out.SetNetworkLayerForChecksum(l) != nil {
			return nil
		}
		ip = l
	case *layers.IPv6:
		l := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: layer.DstIP, DstIP: layer.SrcIP}
		if out.SetNetworkLayerForChecksum(l) != nil {
			return nil
		}
		ip = l
	default:
		return nil
	}
	return []gopacket.SerializableLayer{ip, out}
}
