package ofnet

import (
	"encoding/binary"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// Some datapaths cannot rewrite neighbor discovery messages: the Linux kernel's cannot,
// that of Open vSwitch can. There, flows still decide which solicitation is answered and
// with which flags, and the agent only turns the message around.

// toAgent sends whole packets to the controller.
const toAgent = 0xffff

// answerSolicitation makes the neighbor advertisement (RFC 4861 section 4.4) for a
// solicitation from the nd-reply table: from the target, with the router's MAC, to the
// sender. It returns nil for anything else.
func answerSolicitation(in *of.PacketIn) *of.PacketOut {
	flags, ok := in.Match.Get(regScratch.field())
	if !ok || flags.Uint64() == 0 {
		return nil
	}
	packet := gopacket.NewPacket(in.Data, layers.LayerTypeEthernet, gopacket.NoCopy)
	eth, ok1 := packet.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	ip, ok2 := packet.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	ask, ok3 := packet.Layer(layers.LayerTypeICMPv6NeighborSolicitation).(*layers.ICMPv6NeighborSolicitation)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	router := net.HardwareAddr(RouterMAC[:])
	out := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: ask.TargetAddress, DstIP: ip.SrcIP}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(icmpv6NeighborAdvert, 0)}
	if err := icmp.SetNetworkLayerForChecksum(out); err != nil {
		return nil
	}
	var top [4]byte
	binary.BigEndian.PutUint32(top[:], uint32(flags.Uint64()))
	reply := &layers.ICMPv6NeighborAdvertisement{
		Flags: top[0], TargetAddress: ask.TargetAddress,
		Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: router}},
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: router, DstMAC: eth.SrcMAC, EthernetType: layers.EthernetTypeIPv6}, out, icmp, reply)
	if err != nil {
		return nil
	}
	return &of.PacketOut{InPort: of.PortController, Actions: of.NewActions().Output(in.InPort()), Data: buf.Bytes()}
}
