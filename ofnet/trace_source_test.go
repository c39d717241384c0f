package ofnet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// Which frames of a container pass the source check, in every mode.
func TestTraceSpoofing(t *testing.T) {
	sw := ovstest.Start(t)
	bridges := map[string]map[string]Program{
		"vrouter": routedFlows(vrouter(t)), "vxlan": tunnelledFlows(vxbridge(t)), "vlan": bridgedFlows(newPipeline(t, Settings{Encap: VLAN, Round: 1})),
		"open": routedFlows(newPipeline(t, Settings{Encap: VXLAN, Routing: true, AllowSpoofing: true, TunnelPort: testTunnelPort})),
	}
	for name, flows := range bridges {
		realBridge(t, sw, name, flows)
		sw.AddDummyPort(name, name+"-p1", "1")
		sw.AddDummyPort(name, name+"-p2", "2")
	}
	const (
		ns    = "icmp6,icmpv6_code=0,nw_ttl=255,dl_dst=33:33:ff:00:00:03,ipv6_dst=ff02::1:ff00:3,icmpv6_type=135,nd_target=2001:db8:1::3,"
		na    = "icmp6,icmpv6_code=0,nw_ttl=255,dl_dst=02:02:0a:01:01:02,ipv6_dst=2001:db8:1::2,icmpv6_type=136,"
		arp   = "dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_tpa=10.1.1.2,"
		dhcp  = "udp,dl_dst=ff:ff:ff:ff:ff:ff,nw_dst=255.255.255.255,"
		known = "2001:db8:1::1"
	)
	for _, c := range []struct {
		name, packet string // OWN, OTHER: MAC addresses; IP, BAD: IPv4 addresses
		ok           bool
	}{
		{"own addresses", "ip,dl_src=OWN,nw_src=IP,nw_dst=10.1.1.2", true},
		{"another IPv4 source", "ip,dl_src=OWN,nw_src=BAD,nw_dst=10.1.1.2", false},
		{"another MAC", "ip,dl_src=OTHER,nw_src=IP,nw_dst=10.1.1.2", false},
		{"another MAC, another ethertype", "dl_src=OTHER,dl_type=0x88b5", false},
		{"own MAC, another ethertype", "dl_src=OWN,dl_type=0x88b5", false},
		{"DHCP", dhcp + "dl_src=OWN,nw_src=0.0.0.0,udp_src=68,udp_dst=67", true},
		{"DHCP from another MAC", dhcp + "dl_src=OTHER,nw_src=0.0.0.0,udp_src=68,udp_dst=67", false},
		{"no source, not DHCP", dhcp + "dl_src=OWN,nw_src=0.0.0.0,udp_src=68,udp_dst=53", false},
		{"ARP", arp + "arp_op=1,dl_src=OWN,arp_sha=OWN,arp_spa=IP", true},
		{"ARP reply", arp + "arp_op=2,dl_src=OWN,arp_sha=OWN,arp_spa=IP", true},
		{"ARP probe", "dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_tpa=IP,arp_op=1,dl_src=OWN,arp_sha=OWN,arp_spa=0.0.0.0", true},
		{"ARP probe for another address", arp + "arp_op=1,dl_src=OWN,arp_sha=OWN,arp_spa=0.0.0.0", false},
		{"RARP's operation", arp + "arp_op=3,dl_src=OWN,arp_sha=OWN,arp_spa=IP", false},
		{"ARP for another address", arp + "arp_op=2,dl_src=OWN,arp_sha=OWN,arp_spa=BAD", false},
		{"ARP with another MAC inside", arp + "arp_op=2,dl_src=OWN,arp_sha=OTHER,arp_spa=IP", false},
		{"IPv6", "ipv6,dl_src=OWN,ipv6_src=" + known + ",ipv6_dst=2001:db8:1::2", true},
		{"another IPv6 source", "ipv6,dl_src=OWN,ipv6_src=2001:db8:1::2,ipv6_dst=2001:db8:1::2", false},
		{"link-local", "ipv6,dl_src=OWN,ipv6_src=LINK,ipv6_dst=2001:db8:1::2", true},
		{"another link-local", "ipv6,dl_src=OWN,ipv6_src=fe80::99,ipv6_dst=2001:db8:1::2", false},
		{"link-local, another MAC", "ipv6,dl_src=OTHER,ipv6_src=LINK,ipv6_dst=2001:db8:1::2", false},
		{"unspecified IPv6 source", "udp6,dl_src=OWN,ipv6_src=::,ipv6_dst=2001:db8:1::2", false},
		{"duplicate address detection", strings.Replace(ns, "db8:1::3", "db8:1::1", 1) + "dl_src=OWN,ipv6_src=::,KNOWN", true},
		{"duplicate address detection, link-local", strings.Replace(ns, "2001:db8:1::3", "LINK", 1) + "dl_src=OWN,ipv6_src=::", true},
		{"duplicate address detection of another address", ns + "dl_src=OWN,ipv6_src=::", false},
		{"solicitation without option", ns + "dl_src=OWN,ipv6_src=" + known, true},
		{"solicitation with an option twice, as it is read", strings.Replace(ns, "2001:db8:1::3", "::", 1) + "dl_src=OWN,ipv6_src=" + known, false},
		{"solicitation", ns + "dl_src=OWN,nd_sll=OWN,ipv6_src=" + known, true},
		{"solicitation with another MAC inside", ns + "dl_src=OWN,nd_sll=OTHER,ipv6_src=" + known, false},
		{"advertisement", na + "dl_src=OWN,nd_target=" + known + ",nd_tll=OWN,ipv6_src=" + known, true},
		{"advertisement of another address", na + "dl_src=OWN,nd_target=2001:db8:1::3,nd_tll=OWN,ipv6_src=" + known, false},
		{"advertisement without option", na + "dl_src=OWN,nd_target=" + known + ",ipv6_src=" + known, true},
		{"advertisement of another link-local address", na + "dl_src=OWN,nd_target=fe80::99,nd_tll=OWN,ipv6_src=LINK", false},
		{"advertisement with another MAC inside", na + "dl_src=OWN,nd_target=" + known + ",nd_tll=OTHER,ipv6_src=" + known, false},
	} {
		for name := range bridges {
			fill := strings.NewReplacer("OWN", "02:02:0a:01:01:01", "OTHER", "02:02:0a:01:01:03", "IP,", "10.1.1.1,", "BAD", "10.1.1.3", ",KNOWN", "", "LINK", "fe80::2:aff:fe01:101")
			ip4, has6 := "10.1.1.1", true
			if name == "vlan" {
				fill = strings.NewReplacer("OWN", "02:02:0a:02:01:01", "OTHER", "02:02:0a:02:01:03", "IP,", "10.2.1.1,", "BAD", "10.2.1.3", ",KNOWN", "", "LINK", "fe80::2:aff:fe02:101")
				ip4, has6 = "10.2.1.1", false
			}
			if !has6 && (strings.Contains(c.packet, known) || strings.Contains(c.packet, "KNOWN")) {
				continue // the endpoint of that bridge has no IPv6 address
			}
			t.Run(name+" "+c.name, func(t *testing.T) {
				packet := fill.Replace(c.packet + ",")
				packet = strings.TrimSuffix(strings.ReplaceAll(packet, "=IP", "="+ip4), ",")
				trace := sw.Trace(name, fmt.Sprint("in_port=1,", packet))
				// Frames that pass reach the neighbor table.
				next := bridgeTable(t, name, "neighbor")
				if got := strings.Contains(trace, next); got != (c.ok || name == "open" && !strings.Contains(c.name, "ethertype") && !strings.Contains(c.name, "RARP")) {
					t.Errorf("passes %t:\n%s", got, trace)
				}
			})
		}
	}
}

// bridgeTable is how a trace shows a lookup in a table.
func bridgeTable(t *testing.T, mode, table string) string {
	t.Helper()
	set := map[string]Settings{
		"vrouter": {Encap: VXLAN, Routing: true}, "vxlan": {Encap: VXLAN}, "vlan": {Encap: VLAN},
		"open": {Encap: VXLAN, Routing: true, AllowSpoofing: true},
	}[mode]
	for i, name := range newPipeline(t, set).Tables() {
		if name == table {
			return fmt.Sprintf("goto_table:%d\n", i)
		}
	}
	t.Fatalf("%s has no table %s", mode, table)
	return ""
}
