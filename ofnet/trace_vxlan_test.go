package ofnet

import (
	"fmt"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// Decisions of the VXLAN bridge pipeline.
func TestTraceVXLANBridge(t *testing.T) {
	sw := ovstest.Start(t)
	flooding := newPipeline(t, Settings{Encap: VXLAN, TunnelPort: testTunnelPort, Round: 1, ARPFlood: true})
	for name, p := range map[string]*Pipeline{"br": vxbridge(t), "flooding": flooding} {
		realBridge(t, sw, name, tunnelledFlows(p))
		for i := range 4 {
			sw.AddDummyPort(name, fmt.Sprintf("%s-p%d", name, i+1), fmt.Sprint(i+1))
		}
		sw.Vsctl("add-port", name, name+"-tun", "--", "set", "Interface", name+"-tun", "type=vxlan", "options:remote_ip=flow", "options:key=flow",
			fmt.Sprintf("options:dst_port=%d", 4789+len(name)), fmt.Sprintf("ofport_request=%d", testTunnelPort))
	}

	const (
		a         = "in_port=1,dl_src=02:02:0a:01:01:01,"
		tun       = "in_port=65000,tun_src=192.168.60.11,tun_dst=192.168.60.10,tun_id=0x2711,dl_src=02:02:0a:01:01:03,"
		everybody = "dl_dst=ff:ff:ff:ff:ff:ff,"
		ask       = "arp,arp_op=1,arp_spa=10.1.1.1,arp_sha=02:02:0a:01:01:01,arp_tpa="
		to3       = "set_field:192.168.60.11->tun_dst"
		to6       = "set_field:2001:db8:60::13->tun_ipv6_dst"
		id1       = "set_field:0x2711->tun_id"
	)
	for _, c := range []struct {
		bridge, name, packet string
		want, not            []string
	}{
		{"br", "local, IPv4", a + "dl_dst=02:02:0a:01:01:02,ip,nw_src=10.1.1.1,nw_dst=10.1.1.2,nw_ttl=1", []string{"output:2"}, []string{"tun_id", "dec_ttl"}},
		{"br", "local, IPv6", a + "dl_dst=02:02:0a:01:01:02,ipv6,ipv6_src=2001:db8:1::1,ipv6_dst=2001:db8:1::2", []string{"output:2"}, nil},
		{"br", "local, any ethertype", a + "dl_dst=02:02:0a:01:01:02,dl_type=0x88b5", []string{"drop"}, nil},
		{"br", "remote", a + "dl_dst=02:02:0a:01:01:03,ip,nw_src=10.1.1.1,nw_dst=10.1.1.3", []string{id1, to3, "output:65000"}, []string{to6, "group:"}},
		{"br", "remote on a host with an IPv6 tunnel address", a + "dl_dst=02:02:0a:01:01:04,ip,nw_src=10.1.1.1,nw_dst=10.1.1.4", []string{id1, to6, "output:65000"}, []string{to3}},
		{"br", "broadcast goes to the network's ports and hosts", a + everybody + "ip,nw_src=10.1.1.1,nw_dst=255.255.255.255", []string{id1, "output:2", to3, to6}, []string{"output:3", "output:4", "192.168.60.12"}},
		{"br", "multicast of IPv6, too", a + "dl_dst=33:33:00:00:00:fb,ipv6,ipv6_src=2001:db8:1::1,ipv6_dst=ff02::fb", []string{"output:2", to3, to6}, nil},
		{"br", "neighbor solicitation is flooded", a + "dl_dst=33:33:ff:00:00:03,icmp6,ipv6_src=2001:db8:1::1,ipv6_dst=ff02::1:ff00:3,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8:1::3,nd_sll=02:02:0a:01:01:01,nw_ttl=255", []string{"output:2", to3, to6}, nil},
		{"br", "unknown MAC", a + "dl_dst=02:02:0a:09:09:09,ip,nw_src=10.1.1.1,nw_dst=10.9.9.9", []string{"output:2", to3}, nil},
		{"br", "MAC of another network", a + "dl_dst=02:02:0a:01:02:01,ip,nw_src=10.1.1.1,nw_dst=10.1.2.1", nil, []string{"output:3"}},
		{"br", "MAC of another tenant", a + "dl_dst=02:02:0a:01:01:02,ip,nw_src=10.1.1.1,nw_dst=10.1.1.2", []string{"output:2"}, []string{"output:4"}},
		{"br", "from a tunnel", tun + "dl_dst=02:02:0a:01:01:01,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1", []string{"output:1"}, nil},
		{"br", "from a tunnel to everybody: local ports only", tun + everybody + "ip,nw_src=10.1.1.3,nw_dst=255.255.255.255", []string{"output:1", "output:2"}, []string{"->tun_dst", "output:65000"}},
		{"br", "from a tunnel to a remote MAC: never back", tun + "dl_dst=02:02:0a:01:01:04,ip,nw_src=10.1.1.3,nw_dst=10.1.1.4", nil, []string{"output:65000"}},
		{"br", "from a tunnel, unknown VNI", "in_port=65000,tun_src=192.168.60.11,tun_dst=192.168.60.10,tun_id=0x9999,dl_src=02:02:0a:01:01:03,dl_dst=02:02:0a:01:01:01,ip", []string{"drop"}, nil},
		{"br", "tagged frame", a + everybody + "dl_vlan=5,ip,nw_src=10.1.1.1,nw_dst=10.1.1.2", []string{"drop"}, nil},
		{"br", "ARP for an endpoint is answered with its MAC", a + everybody + ask + "10.1.1.3", []string{"set_field:02:02:0a:01:01:03->eth_src", "IN_PORT"}, []string{"group:"}},
		{"br", "ARP for somebody else is flooded", a + everybody + ask + "10.1.1.77", []string{"output:2", to3, to6}, nil},
		{"br", "announcement is flooded", a + everybody + ask + "10.1.1.1", []string{"output:2", to3}, []string{"IN_PORT"}},
		{"br", "ARP probe is flooded", a + everybody + "arp,arp_op=1,arp_spa=0.0.0.0,arp_sha=02:02:0a:01:01:01,arp_tpa=10.1.1.1", []string{"output:2", to3}, []string{"IN_PORT"}},
		{"br", "ARP from a tunnel reaches local ports", tun + everybody + "arp,arp_op=1,arp_spa=10.1.1.3,arp_sha=02:02:0a:01:01:03,arp_tpa=10.1.1.1", []string{"output:1", "output:2"}, []string{"output:65000"}},
		{"flooding", "ARP is flooded", a + everybody + ask + "10.1.1.3", []string{"output:2", to3, to6}, []string{"IN_PORT"}},
	} {
		t.Run(c.bridge+" "+c.name, func(t *testing.T) { checkTrace(t, sw.Trace(c.bridge, c.packet), c.want, c.not) })
	}
}
