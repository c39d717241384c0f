package ofnet

import (
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	of "github.com/contiv/netplugin/libopenflow"
)

// TestAnnouncement decodes the announcements of an endpoint.
func TestAnnouncement(t *testing.T) {
	mac := MAC{2, 2, 10, 1, 1, 1}
	v4, v6 := netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("2001:db8::1")
	out, err := Announcement(mac, v4, v6, 7)
	if err != nil || len(out) != 2 {
		t.Fatalf("%d packets, %v", len(out), err)
	}
	for _, m := range out {
		po := m.(*of.PacketOut)
		if po.InPort != 7 || po.Actions != of.NewActions().Normal() {
			t.Errorf("%v: want it switched as if it came from port 7", po)
		}
	}
	arp, _ := gopacket.NewPacket(out[0].(*of.PacketOut).Data, layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeARP).(*layers.ARP)
	if arp == nil || arp.Operation != layers.ARPRequest || string(arp.SourceProtAddress) != string(arp.DstProtAddress) ||
		string(arp.SourceHwAddress) != string(mac[:]) || string(arp.SourceProtAddress) != string(v4.AsSlice()) {
		t.Errorf("ARP: %+v", arp)
	}
	packet := gopacket.NewPacket(out[1].(*of.PacketOut).Data, layers.LayerTypeEthernet, gopacket.Default)
	ip, _ := packet.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	na, _ := packet.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
	if ip == nil || ip.HopLimit != 255 || ip.DstIP.String() != "ff02::1" || na == nil || na.Flags != 0x20 || na.TargetAddress.String() != v6.String() {
		t.Errorf("neighbor advertisement: %v", packet)
	}
	if out, err := Announcement(mac, v4, netip.Addr{}, 7); err != nil || len(out) != 1 {
		t.Errorf("IPv4 only: %d packets, %v", len(out), err)
	}
}
