package ofnet

import (
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/test/eventually"
)

// solicitation is a solicitation from 2001:db8:1::1 for target.
func solicitation(t testing.TB, target string) []byte {
	t.Helper()
	src := net.HardwareAddr{2, 2, 10, 1, 1, 1}
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.ParseIP("2001:db8:1::1"), DstIP: net.ParseIP("ff02::1:ff00:3")}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(icmpv6NeighborSolicit, 0)}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(
		buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: src, DstMAC: net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, 3}, EthernetType: layers.EthernetTypeIPv6}, ip, icmp,
		&layers.ICMPv6NeighborSolicitation{TargetAddress: net.ParseIP(target), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: src}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestAnswerSolicitation(t *testing.T) {
	in := &of.PacketIn{Match: of.NewMatch().InPort(7).With(regScratch.is(ndRouter | ndSolicited | ndOverride)), Data: solicitation(t, "2001:db8:1::fe")}
	out := answerSolicitation(in)
	if out == nil {
		t.Fatal("no answer")
	}
	p := gopacket.NewPacket(out.Data, layers.LayerTypeEthernet, gopacket.Default)
	eth := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	ip := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	na, ok := p.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
	if !ok {
		t.Fatalf("the answer is %v", p)
	}
	if eth.SrcMAC.String() != RouterMAC.String() || eth.DstMAC.String() != "02:02:0a:01:01:01" || ip.HopLimit != 255 ||
		ip.SrcIP.String() != "2001:db8:1::fe" || ip.DstIP.String() != "2001:db8:1::1" || na.TargetAddress.String() != "2001:db8:1::fe" ||
		!na.Router() || !na.Solicited() || !na.Override() ||
		len(na.Options) != 1 || net.HardwareAddr(na.Options[0].Data).String() != RouterMAC.String() {
		t.Errorf("the answer is %v", p)
	}
	if err := p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6).SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	if err, mismatches := p.VerifyChecksums(); err != nil || len(mismatches) > 0 {
		t.Errorf("checksums: %v %v", err, mismatches)
	}
	if out.Actions != of.NewActions().Output(7) {
		t.Errorf("sent by %s", out.Actions)
	}
	for name, other := range map[string]*of.PacketIn{
		"no flags":     {Match: of.NewMatch().InPort(7), Data: in.Data},
		"not ND":       {Match: in.Match, Data: in.Data[:40]},
		"an empty one": {Match: in.Match},
	} {
		if out := answerSolicitation(other); out != nil {
			t.Errorf("%s is answered", name)
		}
	}
}

// A real switch sends a solicitation to the agent, and the answer to the port it came from.
func TestRealSwitchAsksTheAgent(t *testing.T) {
	sw := ovstest.Start(t)
	p := newPipeline(t, Settings{Encap: VXLAN, Routing: true, Kernel: true, AllowSpoofing: true, TunnelPort: testTunnelPort})
	realBridge(t, sw, "br", routedFlows(p))
	sw.AddDummyPort("br", "p1", "1")
	sw.Ofctl("mod-port", "br", "p1", "up")
	frame := hex.EncodeToString(solicitation(t, "2001:db8:1::3"))
	eventually.Succeeds(t, "an answer leaves by port 1", func() error {
		sw.Ofctl("packet-out", "br", "in_port=1 packet="+frame+" actions=TABLE")
		if stats := sw.Ofctl("dump-ports", "br", "p1"); strings.Contains(stats, "tx pkts=0") {
			return errors.New(stats)
		}
		return nil
	})
}

func FuzzAnswerSolicitation(f *testing.F) {
	f.Add(solicitation(f, "2001:db8:1::3"), uint32(ndSolicited))
	f.Fuzz(func(_ *testing.T, data []byte, flags uint32) {
		answerSolicitation(&of.PacketIn{Match: of.NewMatch().InPort(1).With(regScratch.is(flags)), Data: data})
	})
}
