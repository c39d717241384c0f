package ofnet

import (
	"errors"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// DNSQuery is a container's datagram to port 53, paused on its way. Either Answer or Pass
// must be called once; otherwise the container gets no reply.
type DNSQuery struct {
	Port    uint32 // OpenFlow port of the container
	VRF     uint16
	ToAgent bool   // for one of the agent's own addresses: no other server will answer it
	Message []byte // the payload, not parsed

	conn packetSender
	in   *of.PacketIn
	eth  *layers.Ethernet
	ip4  *layers.IPv4
	ip6  *layers.IPv6
	udp  *layers.UDP
}

// errNoQuery is the error for a packet that our flows cannot have sent.
var errNoQuery = errors.New("not a datagram for port 53")

// parseDNS parses a packet that a flow of the dns feature has paused.
func parseDNS(conn packetSender, in *of.PacketIn) (*DNSQuery, error) {
	q := &DNSQuery{Port: in.InPort(), conn: conn, in: in}
	if v, ok := in.Match.Get(regVRF.field()); ok {
		q.VRF = uint16(v.Uint64())
	}
	if v, ok := in.Match.Get(regScratch.field()); ok {
		q.ToAgent = v.Uint64() == dnsToAgent
	}
	// Lazy: the message itself is not decoded here.
	packet := gopacket.NewPacket(in.Data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	var ok bool
	if q.udp, ok = packet.Layer(layers.LayerTypeUDP).(*layers.UDP); !ok || q.udp.DstPort != dnsPort || len(q.udp.Payload) == 0 {
		return nil, errNoQuery
	}
	q.eth, _ = packet.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	q.ip4, _ = packet.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	q.ip6, _ = packet.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	if q.eth == nil || (q.ip4 == nil) == (q.ip6 == nil) || q.Port == of.PortAny {
		return nil, errNoQuery
	}
	q.Message = q.udp.Payload
	return q, nil
}

// Pass lets the query go on to the server it is addressed to.
func (q *DNSQuery) Pass() { _ = q.conn.Resume(q.in) }

// Answer sends the container a reply from the server that it asked.
func (q *DNSQuery) Answer(message []byte) {
	if data, err := q.turnAround(message); err == nil {
		_ = q.conn.PacketOut(&of.PacketOut{InPort: of.PortController, Actions: of.NewActions().Output(q.Port), Data: data})
	}
}

// turnAround makes the frame of a reply.
func (q *DNSQuery) turnAround(message []byte) ([]byte, error) {
	const ttl = 64
	eth := &layers.Ethernet{SrcMAC: q.eth.DstMAC, DstMAC: q.eth.SrcMAC}
	udp := &layers.UDP{SrcPort: q.udp.DstPort, DstPort: q.udp.SrcPort}
	var ip gopacket.SerializableLayer
	var pseudo gopacket.NetworkLayer
	if q.ip4 != nil {
		eth.EthernetType = layers.EthernetTypeIPv4
		ip4 := &layers.IPv4{Version: 4, TTL: ttl, Protocol: layers.IPProtocolUDP, SrcIP: q.ip4.DstIP, DstIP: q.ip4.SrcIP}
		ip, pseudo = ip4, ip4
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip6 := &layers.IPv6{Version: 6, HopLimit: ttl, NextHeader: layers.IPProtocolUDP, SrcIP: q.ip6.DstIP, DstIP: q.ip6.SrcIP}
		ip, pseudo = ip6, ip6
	}
	if err := udp.SetNetworkLayerForChecksum(pseudo); err != nil {
		return nil, err
	}
	if eth.SrcMAC[0]&1 != 0 { // the router answers broadcast queries
		eth.SrcMAC = net.HardwareAddr(RouterMAC[:])
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, udp, gopacket.Payload(message))
	return buf.Bytes(), err
}
