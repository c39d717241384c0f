package ofnet

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// The objects of VLAN routing: two networks of one tenant, one of another; endpoints here,
// on a host of the same link (…60.11), and on one behind routers.
var (
	vrNet1  = Network{ID: "r1.blue", Encap: VLAN, VRF: 1, Tag: 101, Gateway4: addr("10.3.1.254"), Gateway6: addr("2001:db8:3::fe")}
	vrNet2  = Network{ID: "r2.blue", Encap: VLAN, VRF: 1, Tag: 102, Gateway4: addr("10.3.2.254")}
	vrOther = Network{ID: "r1.red", Encap: VLAN, VRF: 2, Tag: 103, Gateway4: addr("10.4.1.254")}

	vr1         = endpointOf(vrNet1, "r1.blue-a", "10.3.1.1", "2001:db8:3::1", 1, "")
	vr2         = endpointOf(vrNet2, "r2.blue-b", "10.3.2.1", "", 2, "")
	vrRed       = endpointOf(vrOther, "r1.red-c", "10.4.1.1", "", 3, "")
	vrFar       = endpointOf(vrNet1, "r1.blue-d", "10.3.1.2", "2001:db8:3::2", 0, "192.168.60.11")
	vrFar2      = endpointOf(vrNet2, "r2.blue-e", "10.3.2.2", "", 0, "192.168.60.11")
	vrElsewhere = endpointOf(vrNet1, "r1.blue-f", "10.3.1.9", "", 0, "")
	vrPort      = RouterPort{
		Port: 65001, Addrs: []netip.Addr{addr("50.1.1.2"), addr("2001:db8:50::2")}, BGP: 179,
		Neighbors: []BGPNeighbor{{Addr: addr("50.1.1.200")}, {Addr: addr("50.1.1.201"), TTLSecurity: true}, {Addr: addr("2001:db8:50::200")}},
	}
	hopA    = MAC{2, 0, 0, 0, 0, 0xa}
	hopB    = MAC{2, 0, 0, 0, 0, 0xb}
	oneHop  = HopSet{ID: HopSetID([]netip.Addr{addr("50.1.1.200")}), MACs: []MAC{hopA}}
	twoHops = HopSet{ID: HopSetID([]netip.Addr{addr("50.1.1.200"), addr("50.1.1.201")}), MACs: []MAC{hopA, hopB}}
)

func vlrouter(t testing.TB) *Pipeline {
	return newPipeline(t, Settings{Encap: VLAN, Routing: true, HostMAC: HostMAC(addr("192.168.60.10")), Round: 1})
}

func uplinkFlows(p *Pipeline) map[string]Program {
	flows := map[string]Program{
		"fixed": p.Program(Base{}), "uplink": p.Program(uplink), "router": p.Program(vrPort),
		"hops/1": p.Program(oneHop), "hops/2": p.Program(twoHops),
	}
	for _, n := range []Network{vrNet1, vrNet2, vrOther} {
		flows["net/"+n.ID] = p.Program(n)
	}
	for _, e := range []Endpoint{vr1, vr2, vrRed, vrFar, vrFar2, policed(vrElsewhere)} {
		flows["ep/"+e.ID] = p.Program(e)
	}
	for prefix, hops := range map[string]HopSet{
		"0.0.0.0/0": oneHop, "20.0.0.0/8": oneHop, "20.1.0.0/16": twoHops, "20.1.1.0/24": oneHop,
		"10.3.1.2/32": oneHop, "10.3.1.9/32": oneHop, "2001:db8:99::/48": twoHops, "::/0": oneHop,
	} {
		flows["route/"+prefix] = p.Program(Route{netip.MustParsePrefix(prefix), hops.ID})
	}
	return flows
}

func TestGoldenFlowsOfVLANRouting(t *testing.T) {
	p := vlrouter(t)
	for name, program := range map[string]Program{
		"fixed": p.Program(Base{}), "network": p.Program(vrNet1), "endpoint_local": p.Program(vr1), "endpoint_remote": p.Program(vrFar),
		"endpoint_elsewhere": p.Program(policed(vrElsewhere)), "uplink": p.Program(uplink), "router": p.Program(vrPort),
		"hop": p.Program(oneHop), "hops": p.Program(twoHops), "route": p.Program(Route{netip.MustParsePrefix("20.1.0.0/16"), twoHops.ID}),
		"default": p.Program(Route{netip.MustParsePrefix("::/0"), oneHop.ID}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, "vlrouter_"+name, render(p, program)) })
	}
}

// Decisions of VLAN routing, according to the switch's own tracer.
func TestTraceVLANRouting(t *testing.T) {
	sw := ovstest.Start(t)
	realBridge(t, sw, "br", uplinkFlows(vlrouter(t)))
	for i := range 3 {
		sw.AddDummyPort("br", fmt.Sprintf("p%d", i+1), fmt.Sprint(i+1))
	}
	sw.AddDummyPort("br", "eth2", "65010")
	sw.AddDummyPort("br", "inb01", "65001")

	const (
		a    = "in_port=1,dl_src=02:02:0a:03:01:01,dl_dst=00:00:11:11:11:11,"
		mine = "dl_dst=02:03:c0:a8:3c:0a,"
		peer = "in_port=65010,dl_src=02:03:c0:a8:3c:0b," + mine
		out  = "in_port=65010,dl_src=02:00:00:00:00:0a," + mine
		bc   = "dl_dst=ff:ff:ff:ff:ff:ff,"
	)
	for _, c := range []struct {
		name, packet string
		want, not    []string
	}{
		{
			"local, other network of the tenant", a + "ip,nw_src=10.3.1.1,nw_dst=10.3.2.1,nw_ttl=64",
			[]string{"dec_ttl", "-> output port is 2"},
			[]string{"push_vlan"},
		},
		{"local, other tenant: no way inside, so out", a + "ip,nw_src=10.3.1.1,nw_dst=10.4.1.1,nw_ttl=64", []string{"output:65010"}, []string{"port is 3"}},
		{
			"another host of the link, same network", a + "ip,nw_src=10.3.1.1,nw_dst=10.3.1.2,nw_ttl=64",
			[]string{"set_field:02:03:c0:a8:3c:0b->eth_dst", "set_field:02:03:c0:a8:3c:0a->eth_src", "push_vlan(vid=101", "output:65010"},
			[]string{"dec_ttl", "02:00:00:00:00:0a"},
		},
		{
			"another host of the link, other network", a + "ip,nw_src=10.3.1.1,nw_dst=10.3.2.2,nw_ttl=64",
			[]string{"push_vlan(vid=102", "dec_ttl", "output:65010"},
			nil,
		},
		{"the same by IPv6", a + "ipv6,ipv6_src=2001:db8:3::1,ipv6_dst=2001:db8:3::2,nw_ttl=64", []string{"push_vlan(vid=101", "output:65010"}, nil},
		{
			"an endpoint on another link goes by its route", a + "ip,nw_src=10.3.1.1,nw_dst=10.3.1.9,nw_ttl=64",
			[]string{"set_field:0x7->reg4", "02:00:00:00:00:0a->eth_dst", "output:65010", "dec_ttl"},
			[]string{"push_vlan"},
		},
		{"the longest prefix wins", a + "ip,nw_src=10.3.1.1,nw_dst=20.1.1.5,nw_ttl=64", []string{"nw_dst=20.1.1.0/24", "dec_ttl", "02:00:00:00:00:0a->eth_dst", "output:65010"}, []string{"group"}},
		{"then the next", a + "ip,nw_src=10.3.1.1,nw_dst=20.1.2.5,nw_ttl=64", []string{"nw_dst=20.1.0.0/16", "group", "sym_l4"}, nil},
		{"then the next but one", a + "ip,nw_src=10.3.1.1,nw_dst=20.2.2.5,nw_ttl=64", []string{"nw_dst=20.0.0.0/8"}, nil},
		{"then the default", a + "ip,nw_src=10.3.1.1,nw_dst=30.2.2.5,nw_ttl=64", []string{"output:65010"}, nil},
		{"IPv6 to the outside", a + "ipv6,ipv6_src=2001:db8:3::1,ipv6_dst=2001:db8:99::5,nw_ttl=64", []string{"group", "sym_l4"}, nil},
		{"multicast does not leave", a + "ip,nw_src=10.3.1.1,nw_dst=224.0.0.5,nw_ttl=64", []string{"drop"}, nil},
		{"nor does broadcast", a + "ip,nw_src=10.3.1.1,nw_dst=255.255.255.255,nw_ttl=64", []string{"drop"}, nil},
		{"nor what is link-local", a + "ipv6,ipv6_src=2001:db8:3::1,ipv6_dst=fe80::99,nw_ttl=64", []string{"drop"}, nil},
		{"a tagged frame of a container", a + "dl_vlan=103,ip,nw_src=10.3.1.1,nw_dst=10.4.1.1,nw_ttl=64", []string{"drop"}, nil},

		{"from another host, by the network's VLAN", peer + "dl_vlan=101,ip,nw_src=10.3.1.2,nw_dst=10.3.1.1,nw_ttl=64", []string{"pop_vlan", "-> output port is 1"}, []string{"dec_ttl"}},
		{"by the VLAN of another tenant", peer + "dl_vlan=103,ip,nw_src=10.3.1.2,nw_dst=10.3.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"by a VLAN of nobody", peer + "dl_vlan=999,ip,nw_src=10.3.1.2,nw_dst=10.3.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"a frame for another host", "in_port=65010,dl_src=02:03:c0:a8:3c:0b,dl_dst=02:03:c0:a8:3c:0c,dl_vlan=101,ip,nw_src=10.3.1.2,nw_dst=10.3.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"no transit to another host", peer + "dl_vlan=101,ip,nw_src=10.3.1.9,nw_dst=10.3.1.2,nw_ttl=64", []string{"drop"}, nil},
		{"nor to the outside", out + "ip,nw_src=20.1.1.1,nw_dst=30.1.1.1,nw_ttl=64", []string{"drop"}, nil},

		{"from the outside", out + "ip,nw_src=20.1.1.1,nw_dst=10.3.1.1,nw_ttl=64", []string{"dec_ttl", "-> output port is 1"}, nil},
		{"to another tenant", out + "ip,nw_src=20.1.1.1,nw_dst=10.4.1.1,nw_ttl=64", []string{"-> output port is 3"}, nil},
		{"by IPv6", out + "ipv6,ipv6_src=2001:db8:99::1,ipv6_dst=2001:db8:3::1,nw_ttl=64", []string{"-> output port is 1"}, nil},
		{"to the router itself", out + "tcp,nw_src=50.1.1.200,nw_dst=50.1.1.2,tp_dst=179,nw_ttl=1", []string{"output:65001"}, []string{"dec_ttl"}},
		{"to the router itself, by IPv6", out + "tcp6,ipv6_src=2001:db8:50::200,ipv6_dst=2001:db8:50::2,tp_dst=179,nw_ttl=1", []string{"output:65001"}, nil},
		{"an answer on a session that the host has opened", out + "tcp,nw_src=50.1.1.200,nw_dst=50.1.1.2,tp_src=179,tp_dst=40000,tcp_flags=ack,nw_ttl=1", []string{"output:65001"}, nil},
		{"the first one", out + "tcp,nw_src=50.1.1.200,nw_dst=50.1.1.2,tp_src=179,tp_dst=40000,tcp_flags=syn|ack,nw_ttl=1", []string{"output:65001"}, nil},
		{"another port of the host, from that of BGP", out + "tcp,nw_src=50.1.1.200,nw_dst=50.1.1.2,tp_src=179,tp_dst=9999,tcp_flags=syn,nw_ttl=64", []string{"drop"}, []string{"output:65001"}},
		{"another port of the host", out + "tcp,nw_src=50.1.1.200,nw_dst=50.1.1.2,tp_src=40000,tp_dst=9999,nw_ttl=64", []string{"drop"}, []string{"output:65001"}},
		{"another port of the host, by UDP", out + "udp,nw_src=50.1.1.200,nw_dst=50.1.1.2,udp_dst=4789,nw_ttl=64", []string{"drop"}, []string{"output:65001"}},
		{"another port of the host, by IPv6", out + "tcp6,ipv6_src=2001:db8:50::200,ipv6_dst=2001:db8:50::2,tp_dst=9999,nw_ttl=64", []string{"drop"}, []string{"output:65001"}},
		{"another port of its link-local address", out + "tcp6,ipv6_src=fe80::a,ipv6_dst=fe80::3:c0ff:fea8:3c0a,tp_dst=9999,nw_ttl=64", []string{"drop"}, []string{"output:65001"}},
		{"BGP of an unknown router on the link", out + "tcp,nw_src=50.1.1.99,nw_dst=50.1.1.2,tp_dst=179,nw_ttl=1", []string{"drop"}, []string{"output:65001"}},
		{"ping of an unknown sender", out + "icmp,nw_src=20.1.1.1,nw_dst=50.1.1.2,icmp_type=8,nw_ttl=60", []string{"drop"}, []string{"output:65001"}},
		{"a neighbor's ping", out + "icmp,nw_src=50.1.1.200,nw_dst=50.1.1.2,icmp_type=8,nw_ttl=64", []string{"output:65001"}, nil},
		{"a neighbor's ping, by IPv6", out + "icmp6,ipv6_src=2001:db8:50::200,ipv6_dst=2001:db8:50::2,icmpv6_type=128,nw_ttl=64", []string{"output:65001"}, nil},
		{"a neighbor's redirect", out + "icmp,nw_src=50.1.1.200,nw_dst=50.1.1.2,icmp_type=5,nw_ttl=64", []string{"drop"}, []string{"output:65001"}},
		{"a later fragment", out + "tcp,nw_src=50.1.1.200,nw_dst=50.1.1.2,nw_frag=later,nw_ttl=1", []string{"drop"}, []string{"output:65001"}},
		{"BGP with TTL security", out + "tcp,nw_src=50.1.1.201,nw_dst=50.1.1.2,tp_dst=179,nw_ttl=255", []string{"output:65001"}, nil},
		{"the same from further away", out + "tcp,nw_src=50.1.1.201,nw_dst=50.1.1.2,tp_dst=179,nw_ttl=254", []string{"drop"}, []string{"output:65001"}},
		{"ARP of the physical router", "in_port=65010,dl_src=02:00:00:00:00:0a," + bc + "arp,arp_op=1,arp_spa=50.1.1.200,arp_tpa=50.1.1.2", []string{"output:65001"}, nil},
		{"its neighbor solicitation", "in_port=65010,dl_src=02:00:00:00:00:0a,dl_dst=33:33:ff:00:00:02,icmp6,ipv6_src=fe80::a,ipv6_dst=ff02::1:ff00:2,icmpv6_type=135,icmpv6_code=0,nw_ttl=255", []string{"output:65001"}, nil},
		{"its router advertisement", "in_port=65010,dl_src=02:00:00:00:00:0a,dl_dst=33:33:00:00:00:01,icmp6,ipv6_src=fe80::a,ipv6_dst=ff02::1,icmpv6_type=134,icmpv6_code=0,nw_ttl=255", []string{"drop"}, nil},
		{"from the router itself", "in_port=65001,dl_src=02:03:c0:a8:3c:0a,dl_dst=02:00:00:00:00:0a,tcp,nw_src=50.1.1.2,nw_dst=50.1.1.200,tp_dst=179", []string{"output:65010"}, []string{"dec_ttl"}},
		{"ARP for the gateway", "in_port=1,dl_src=02:02:0a:03:01:01," + bc + "arp,arp_op=1,arp_spa=10.3.1.1,arp_tpa=10.3.1.254,arp_sha=02:02:0a:03:01:01", []string{"IN_PORT"}, nil},
		{"ARP for an endpoint on another link", "in_port=1,dl_src=02:02:0a:03:01:01," + bc + "arp,arp_op=1,arp_spa=10.3.1.1,arp_tpa=10.3.1.9,arp_sha=02:02:0a:03:01:01", []string{"IN_PORT"}, nil},
		{"tagged ARP from the link", "in_port=65010,dl_src=02:00:00:00:00:0a," + bc + "dl_vlan=101,arp,arp_op=1,arp_spa=10.3.1.77,arp_tpa=10.3.1.1", []string{"drop"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { checkTrace(t, sw.Trace("br", c.packet), c.want, c.not) })
	}
}

// Connections to one prefix are spread over its next hops.
func TestRoutesSpreadOverTheirNextHops(t *testing.T) {
	sw := ovstest.Start(t)
	realBridge(t, sw, "br", uplinkFlows(vlrouter(t)))
	sw.AddDummyPort("br", "p1", "1")
	sw.AddDummyPort("br", "eth2", "65010")
	const flows = 40
	for i := range flows {
		buf := gopacket.NewSerializeBuffer()
		ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: vr1.IPv4.AsSlice(), DstIP: net.IP{20, 1, 2, byte(i)}}
		tcp := &layers.TCP{SrcPort: layers.TCPPort(30000 + i), DstPort: 80, SYN: true}
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		eth := &layers.Ethernet{SrcMAC: vr1.MAC[:], DstMAC: RouterMAC[:], EthernetType: layers.EthernetTypeIPv4}
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, tcp); err != nil {
			t.Fatal(err)
		}
		sw.Ofctl("packet-out", "br", fmt.Sprintf("in_port=1, packet=%x, actions=table", buf.Bytes()))
	}
	// The counters of a group follow its packets within about a second.
	count := regexp.MustCompile(`bucket\d:packet_count=(\d+)`)
	deadline := time.Now().Add(time.Minute)
	for {
		var used []int
		sum := 0
		for _, m := range count.FindAllStringSubmatch(sw.Ofctl("dump-group-stats", "br"), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			used, sum = append(used, n), sum+n
		}
		if sum == flows {
			if len(used) != 2 || min(used[0], used[1]) < 5 {
				t.Errorf("%d flows went by the next hops %v, expected some by each", flows, used)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d flows were counted: %v", sum, flows, used)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// With several uplinks the first one is used, until it is down.
func TestFirstUplinkIsSentBy(t *testing.T) {
	sw := ovstest.Start(t)
	p := vlrouter(t)
	flows := uplinkFlows(p)
	flows["uplink/2"] = p.Program(Uplink{Name: "eth3", Port: 65011})
	s := realBridge(t, sw, "br", flows)
	sw.AddDummyPort("br", "p1", "1")
	sw.AddDummyPort("br", "eth2", "65010")
	sw.AddDummyPort("br", "eth3", "65011")
	const packet = "in_port=1,dl_src=02:02:0a:03:01:01,dl_dst=00:00:11:11:11:11,ip,nw_src=10.3.1.1,nw_dst=30.1.1.1,nw_ttl=64"
	checkTrace(t, sw.Trace("br", packet), []string{"output:65010"}, []string{"output:65011"})
	s.Remove("uplink")
	settle(t, s)
	checkTrace(t, sw.Trace("br", packet), []string{"output:65011"}, []string{"output:65010"})
}

func TestRealSwitchReportsVLANRoutingAsWanted(t *testing.T) {
	sw := ovstest.Start(t)
	flows := uplinkFlows(vlrouter(t))
	realBridge(t, sw, "br", flows)
	later := NewSwitch(SwitchConfig{Name: "br", Target: sw.Target("br"), Log: quiet()})
	for owner, p := range flows {
		later.Set(owner, p)
	}
	later.InitialSyncDone()
	startSwitch(t, later)
	settle(t, later)
	if got := later.Status().Sent; got != 0 {
		t.Errorf("%d changes sent to a bridge that had everything:\n%s", got, strings.Join(sw.DumpFlows("br"), "\n"))
	}
}

func TestHopSetIDIsOfTheSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hops := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) netip.Addr {
			if rapid.Bool().Draw(t, "six") {
				return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))
			}
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
		}), 1, 8, rapid.ID).Draw(t, "hops")
		id := HopSetID(hops)
		if id < firstHopSet || id > 0xf7ffffff {
			t.Errorf("HopSetID gives %#x, expected a number of the upper groups", id)
		}
		slices.Reverse(hops)
		if HopSetID(hops) != id {
			t.Error("HopSetID depends on the order")
		}
	})
}

func TestHostMAC(t *testing.T) {
	for vtep, want := range map[string]string{
		"192.168.60.10": "02:03:c0:a8:3c:0a", "::ffff:192.168.60.10": "02:03:c0:a8:3c:0a",
	} {
		if got := HostMAC(addr(vtep)).String(); got != want {
			t.Errorf("HostMAC(%s) = %s, want %s", vtep, got, want)
		}
	}
	if a, b := HostMAC(addr("2001:db8::1")), HostMAC(addr("2001:db8::2")); a == b || a[0] != 2 || a[1] != 3 {
		t.Errorf("HostMAC of two IPv6 addresses: %s and %s, want two of 02:03:…", a, b)
	}
}
