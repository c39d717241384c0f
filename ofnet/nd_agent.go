package ofnet

import (
	"encoding/binary"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// Where the datapath cannot rewrite neighbour discovery messages (the Linux kernel's
// cannot, Open vSwitch's own does), the flows decide as ever which solicitation is
// answered, and with which flags, and the agent only turns the message around.

// toAgent sends whole packets to whoever holds the OpenFlow channel.
const toAgent = 0xffff

// answerSolicitation makes the neighbour advertisement (RFC 4861 section 4.4) for a
// solicitation that the nd-reply table has passed on: from the target, which is at the
// router's MAC, to the one who asked. Anything else gives nil.
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
