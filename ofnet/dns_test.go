package ofnet

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// datagram is a frame that an endpoint sends.
func datagram(t testing.TB, from Endpoint, to netip.Addr, dstMAC MAC, dstPort layers.UDPPort, payload string) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: from.MAC[:], DstMAC: dstMAC[:], EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 40000, DstPort: dstPort}
	var ip gopacket.SerializableLayer
	var pseudo gopacket.NetworkLayer
	if to.Is4() {
		ip4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.IPv4.AsSlice(), DstIP: to.AsSlice()}
		ip, pseudo = ip4, ip4
	} else {
		ip6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.IPv6.AsSlice(), DstIP: to.AsSlice()}
		ip, pseudo, eth.EthernetType = ip6, ip6, layers.EthernetTypeIPv6
	}
	if err := udp.SetNetworkLayerForChecksum(pseudo); err != nil {
		t.Fatal(err)
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, udp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// sentOut records what the agent sends.
type sentOut struct {
	out     []*of.PacketOut
	resumed []*of.PacketIn
}

func (s *sentOut) PacketOut(m *of.PacketOut) error { s.out = append(s.out, m); return nil }
func (s *sentOut) Resume(m *of.PacketIn) error     { s.resumed = append(s.resumed, m); return nil }

func TestDNSAnswer(t *testing.T) {
	gateway := MAC{0, 0, 0, 9, 9, 9}
	for _, server := range []string{"10.1.1.254", "2001:db8:1::fe"} {
		in := &of.PacketIn{
			Match: of.NewMatch().InPort(7).With(regVRF.is(3)).With(regScratch.is(dnsToAgent)), Userdata: []byte(dnsUserdata),
			Data: datagram(t, local1, addr(server), gateway, 53, "question"),
		}
		var conn sentOut
		var got *DNSQuery
		agentParts{dns: func(q *DNSQuery) { got = q }, counts: &packetIns{}}.handle(&conn, in)
		if got == nil || got.Port != 7 || got.VRF != 3 || !got.ToAgent || string(got.Message) != "question" {
			t.Fatalf("query to %s: %+v", server, got)
		}
		got.Answer([]byte("answer"))
		if len(conn.out) != 1 || conn.out[0].Actions != of.NewActions().Output(7) {
			t.Fatalf("sent %+v", conn.out)
		}
		p := gopacket.NewPacket(conn.out[0].Data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true})
		eth := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		src, dst := p.NetworkLayer().NetworkFlow().Endpoints()
		type view struct{ SrcMAC, DstMAC, Src, Dst, Payload string }
		want := view{gateway.String(), local1.MAC.String(), server, local1.IPv4.String(), "answer"}
		if addr(server).Is6() {
			want.Dst = local1.IPv6.String()
		}
		have := view{eth.SrcMAC.String(), net.HardwareAddr(eth.DstMAC).String(), src.String(), dst.String(), string(udp.Payload)}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("answer (-want +got):\n%s", d)
		}
		if udp.SrcPort != 53 || udp.DstPort != 40000 || udp.Checksum == 0 {
			t.Errorf("UDP header %+v", udp)
		}
		if err := udp.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
			t.Fatal(err)
		}
		if err, bad := p.VerifyChecksums(); err != nil || len(bad) > 0 {
			t.Errorf("checksums: %v %v", err, bad)
		}
	}
}

func TestDNSMalformed(t *testing.T) {
	good := datagram(t, local1, addr("10.1.1.254"), RouterMAC, 53, "question")
	match := of.NewMatch().InPort(7)
	sw := NewSwitch(SwitchConfig{})
	var conn sentOut
	parts := agentParts{counts: sw.counts}
	for i, in := range []*of.PacketIn{
		{Match: match},
		{Match: match, Data: good[:20]},
		{Match: match, Data: good[:40]},
		{Match: of.NewMatch(), Data: good},
		{Match: match, Data: datagram(t, local1, addr("10.1.1.254"), RouterMAC, 54, "question")},
		{Match: match, Data: datagram(t, local1, addr("10.1.1.254"), RouterMAC, 53, "")},
	} {
		in.Userdata = []byte(dnsUserdata)
		parts.handle(&conn, in)
		if got := sw.Status().Malformed; got != uint64(i+1) {
			t.Errorf("packet %d: %d malformed ones are counted, want %d", i, got, i+1)
		}
	}
	if len(conn.out)+len(conn.resumed) != 0 {
		t.Errorf("malformed packets go on: %+v", conn)
	}
	parts.handle(&conn, &of.PacketIn{Match: match, Data: good, Userdata: []byte(dnsUserdata)})
	if len(conn.resumed) != 1 {
		t.Error("without a name server a query does not go on")
	}
}

func TestDNSClients(t *testing.T) {
	for _, encap := range []Encap{VLAN, VXLAN} {
		for _, port := range []uint32{1, 255, 256, 0xf000} {
			for _, a := range []netip.Addr{DNSClient4(encap, port), DNSClient6(encap, port)} {
				if e, p, ok := DNSClient(a); !ok || e != encap || p != port {
					t.Errorf("%s stands for port %d of %s (%t), want %d of %s", a, p, e, ok, port, encap)
				}
			}
		}
	}
	for _, a := range []string{"10.1.1.1", "198.18.0.0", "2001:db8::1"} {
		if _, _, ok := DNSClient(addr(a)); ok {
			t.Errorf("%s stands for a container", a)
		}
	}
}

// On a real switch, in every mode, a query to any server arrives at the agent and is
// answered, or continues to its destination.
func TestDNSOnRealSwitch(t *testing.T) {
	sw := ovstest.Start(t)
	settings := func(encap Encap, routing bool) Settings {
		return Settings{Encap: encap, Routing: routing, TunnelPort: testTunnelPort, DNS: DNSSettings{Rate: 1000, Port: testDNSPort}}
	}
	for _, c := range []struct {
		name     string
		set      Settings
		objects  func(*Pipeline) map[string]Program
		from, to Endpoint
		dstMAC   MAC
		server   string // of the agent
	}{
		{"vrouter", settings(VXLAN, true), routedFlows, local1, local1b, RouterMAC, "10.1.1.254"},
		{"vrouter6", settings(VXLAN, true), routedFlows, local1, local1b, RouterMAC, "2001:db8:1::fe"},
		{"vxlan", settings(VXLAN, false), tunnelledFlows, local1, local1b, local1b.MAC, "169.254.1.1"},
		{"vlan", settings(VLAN, false), bridgedFlows, vl1, vl2, vl2.MAC, "169.254.1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			queries := make(chan *DNSQuery, 10)
			sw.AddBridge(c.name)
			s := NewSwitch(SwitchConfig{Name: c.name, Target: sw.Target(c.name), Log: quiet(), DNS: func(q *DNSQuery) { queries <- q }})
			startSwitch(t, s)
			for owner, flows := range c.objects(newPipeline(t, c.set)) {
				s.Set(owner, flows)
			}
			s.InitialSyncDone()
			settle(t, s)
			other := c.to.IPv4
			if addr(c.server).Is6() {
				other = c.to.IPv6
			}
			send := func(to netip.Addr, mac MAC) *DNSQuery {
				frame := hex.EncodeToString(datagram(t, c.from, to, mac, 53, "question"))
				sw.Ofctl("packet-out", c.name, "in_port=1 packet="+frame+" actions=TABLE")
				return <-queries
			}
			if q := send(other, c.dstMAC); q.Port != 1 || q.VRF != c.from.VRF || q.ToAgent || string(q.Message) != "question" {
				t.Errorf("query to %s: %+v", other, q)
			}
			if q := send(addr(c.server), RouterMAC); q.Port != 1 || q.VRF != c.from.VRF || !q.ToAgent {
				t.Errorf("query to %s: %+v", c.server, q)
			}
		})
	}
}

func FuzzParseDNS(f *testing.F) {
	f.Add(datagram(f, local1, addr("10.1.1.254"), RouterMAC, 53, "question"), uint32(1))
	f.Add(datagram(f, local1, addr("2001:db8:1::fe"), RouterMAC, 53, "question"), uint32(0))
	f.Fuzz(func(t *testing.T, data []byte, scratch uint32) {
		var conn sentOut
		q, err := parseDNS(&conn, &of.PacketIn{Match: of.NewMatch().InPort(1).With(regScratch.is(scratch)), Data: data})
		if err != nil {
			return
		}
		if len(q.Message) == 0 {
			t.Fatal("a query without a message")
		}
		q.Answer(q.Message)
		q.Pass()
		if len(conn.resumed) != 1 {
			t.Fatal("the query did not go on")
		}
	})
}
