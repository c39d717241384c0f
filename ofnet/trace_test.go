package ofnet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/test/eventually"
)

// realBridge programs a real Open vSwitch with flows by owner, and returns the Switch.
func realBridge(t *testing.T, sw *ovstest.Switch, name string, byOwner map[string]Program) *Switch {
	t.Helper()
	sw.AddBridge(name)
	s := NewSwitch(SwitchConfig{Name: name, Target: sw.Target(name), Log: quiet()})
	startSwitch(t, s)
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) { // if two want the same flow, the first gets it
		s.Set(owner, byOwner[owner])
	}
	s.InitialSyncDone()
	settle(t, s)
	return s
}

func routedFlows(p *Pipeline) map[string]Program {
	flows := map[string]Program{"fixed": p.Program(Base{})}
	for _, peer := range []string{"192.168.60.11", "192.168.60.12", "2001:db8:60::13"} {
		flows["peer/"+peer] = p.Program(Peer{VTEP: addr(peer)})
	}
	for _, n := range []Network{vxNet1, vxNet2, vxOther} {
		flows["net/"+n.ID] = p.Program(n)
	}
	for _, e := range []Endpoint{local1, local1b, local2, remote1, remote2, red, redFar} {
		flows["ep/"+e.ID] = p.Program(e)
	}
	return flows
}

func tunnelledFlows(p *Pipeline) map[string]Program {
	flows := routedFlows(p)
	flows["ep/"+remote6.ID] = p.Program(remote6)
	for _, f := range []Flood{vxFlood1, vxFlood2, vxFlood3} {
		flows["flood/"+f.Network.ID] = p.Program(f)
	}
	return flows
}

func bridgedFlows(p *Pipeline) map[string]Program {
	flows := map[string]Program{"fixed": p.Program(Base{}), "uplink": p.Program(uplink)}
	for _, n := range []Network{vlNet1, vlNet2} {
		flows["net/"+n.ID] = p.Program(n)
	}
	for _, e := range []Endpoint{vl1, vl2, vl3, vlFar} {
		flows["ep/"+e.ID] = p.Program(e)
	}
	return flows
}

// A real switch reports flows exactly as they were sent; otherwise every restart of the
// agent would send flows again.
func TestRealSwitchReportsWhatWasWanted(t *testing.T) {
	sw := ovstest.Start(t)
	withHost := map[string]map[string]Program{}
	for name, set := range hostModes {
		_, withHost[name] = hostFlows(t, set)
	}
	for _, c := range []struct {
		name  string
		flows map[string]Program
	}{
		{"host-vrouter", withHost["vrouter"]},
		{"host-vxlan", withHost["vxlan"]},
		{"host-vlan", withHost["vlan"]},
		{"host-vlrouter", withHost["vlrouter"]},
		{"routed", routedFlows(vrouter(t))},
		{"tunnelled", tunnelledFlows(vxbridge(t))},
		{"bridged", bridgedFlows(newPipeline(t, Settings{Encap: VLAN, Round: 1}))},
		{"policed", policedFlows(t)},
		{"services", map[string]Program{
			"fixed": vrouter(t).Program(Base{}), "svc": vrouter(t).Program(webService(vxNet1, 0)), "sticky": vrouter(t).Program(renumbered(webService(vxOther, 3*time.Hour))),
		}},
		{"guarded", endpointPolicyFlows(t)},
		{"logged", loggedFlows(t)},
		{"rated", routedFlows(newPipeline(t, Settings{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1, ConnectionRate: 5000, Kernel: true}))},
		{"limited", map[string]Program{
			"fixed": vrouter(t).Program(Base{}), "a": vrouter(t).Program(limited(local1, QoS{Rate: 10485, Burst: 100, DSCP: 46})),
			"b": vrouter(t).Program(limited(local2, QoS{Rate: 1000})), "c": vrouter(t).Program(limited(red, QoS{DSCP: 10})),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := realBridge(t, sw, c.name, c.flows)
			sent := first.Status().Sent
			if sent == 0 {
				t.Fatal("nothing was sent")
			}
			// Another agent with the same desired set, in a later round.
			later := NewSwitch(SwitchConfig{Name: c.name, Target: sw.Target(c.name), Log: quiet()})
			for _, owner := range slices.Sorted(maps.Keys(c.flows)) {
				flows := c.flows[owner]
				flows.Flows = slices.Clone(flows.Flows)
				for i := range flows.Flows {
					flows.Flows[i].Cookie += 1 << cookieRoundShift
				}
				later.Set(owner, flows)
			}
			later.InitialSyncDone()
			startSwitch(t, later)
			settle(t, later)
			if got := later.Status().Sent; got != 0 {
				t.Errorf("%d flow-mods sent to a bridge that had everything:\n%s", got, strings.Join(sw.DumpFlows(c.name), "\n"))
			}
		})
	}
}

// A switch that restarts loses its flows and gets them again.
func TestRealSwitchRestart(t *testing.T) {
	sw := ovstest.Start(t)
	s := realBridge(t, sw, "br", routedFlows(vrouter(t)))
	before := sw.DumpFlows("br")
	sw.Restart(9)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	for s.Status().Connects < 2 {
		if ctx.Err() != nil {
			t.Fatal("no new channel: ", s.Ready())
		}
		time.Sleep(10 * time.Millisecond)
	}
	settle(t, s)
	if after := sw.DumpFlows("br"); !slices.Equal(sorted(before), sorted(after)) {
		t.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func sorted(lines []string) []string {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	return lines
}

// Decisions of the routed pipeline, according to the switch's own tracer.
func TestTraceRouted(t *testing.T) {
	sw := ovstest.Start(t)
	realBridge(t, sw, "br", routedFlows(vrouter(t)))
	for i := range 4 {
		sw.AddDummyPort("br", fmt.Sprintf("p%d", i+1), fmt.Sprint(i+1))
	}
	sw.Vsctl("add-port", "br", "tun0", "--", "set", "Interface", "tun0", "type=vxlan", "options:remote_ip=flow", "options:key=flow",
		fmt.Sprintf("ofport_request=%d", testTunnelPort))

	const a = "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=00:00:11:11:11:11,"
	const tun = "in_port=65000,tun_src=192.168.60.11,tun_dst=192.168.60.10,dl_src=00:00:11:11:11:11,dl_dst=00:00:11:11:11:11,"
	for _, c := range []struct {
		name, packet string
		want         []string // parts of the trace; "drop" stands for a final drop
		not          []string
	}{
		{
			"same network keeps its TTL", a + "ip,nw_src=10.1.1.1,nw_dst=10.1.1.2,nw_ttl=64",
			[]string{"set_field:02:02:0a:01:01:02->eth_dst", "-> output port is 2"},
			[]string{"dec_ttl"},
		},
		{
			"other network of the tenant costs a hop", a + "ip,nw_src=10.1.1.1,nw_dst=10.1.2.1,nw_ttl=64",
			[]string{"dec_ttl", "-> output port is 3"},
			nil,
		},
		{
			"remote, same network", a + "ip,nw_src=10.1.1.1,nw_dst=10.1.1.3,nw_ttl=64",
			[]string{"set_field:0x2711->tun_id", "set_field:192.168.60.11->tun_dst", "-> output port is 65000"},
			[]string{"dec_ttl"},
		},
		{
			"remote, other network", a + "ip,nw_src=10.1.1.1,nw_dst=10.1.2.2,nw_ttl=64",
			[]string{"set_field:0x2712->tun_id", "set_field:192.168.60.12->tun_dst", "dec_ttl", "-> output port is 65000"},
			nil,
		},
		{
			"the other tenant has the same addresses", "in_port=4,dl_src=02:02:0a:01:01:02,dl_dst=00:00:11:11:11:11,ip,nw_src=10.1.1.2,nw_dst=10.1.1.3,nw_ttl=64",
			[]string{"set_field:0x2713->tun_id", "-> output port is 65000"},
			nil,
		},
		{"and cannot reach what only the first has", "in_port=4,dl_src=02:02:0a:01:01:02,dl_dst=00:00:11:11:11:11,ip,nw_src=10.1.1.2,nw_dst=10.1.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"unknown destination", a + "ip,nw_src=10.1.1.1,nw_dst=10.1.1.77,nw_ttl=64", []string{"drop"}, nil},
		{
			"IPv6, same network", a + "ipv6,ipv6_src=2001:db8:1::1,ipv6_dst=2001:db8:1::2,nw_ttl=64",
			[]string{"-> output port is 2"},
			[]string{"dec_ttl"},
		},
		{
			"IPv6, remote", a + "ipv6,ipv6_src=2001:db8:1::1,ipv6_dst=2001:db8:1::3,nw_ttl=64",
			[]string{"set_field:192.168.60.11->tun_dst", "-> output port is 65000"},
			nil,
		},
		{
			"from a tunnel to a local endpoint", tun + "tun_id=0x2711,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64",
			[]string{"-> output port is 1"},
			[]string{"dec_ttl"},
		},
		{"from a tunnel, VNI of another tenant", tun + "tun_id=0x2713,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"from a tunnel of nobody's", strings.Replace(tun, ".11,", ".99,", 1) + "tun_id=0x2711,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"from a tunnel of IPv6 of nobody's", strings.NewReplacer("tun_src", "tun_ipv6_src", "tun_dst", "tun_ipv6_dst", "192.168.60.11", "2001:db8:60::99", "192.168.60.10", "2001:db8:60::10").Replace(tun) + "tun_id=0x2711,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64", []string{"drop"}, nil},
		{"from a tunnel of IPv6", strings.NewReplacer("tun_src", "tun_ipv6_src", "tun_dst", "tun_ipv6_dst", "192.168.60.11", "2001:db8:60::13", "192.168.60.10", "2001:db8:60::10").Replace(tun) + "tun_id=0x2711,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64", []string{"-> output port is 1"}, nil},
		{"from a tunnel, unknown VNI", tun + "tun_id=0x9999,ip,nw_src=10.1.1.3,nw_dst=10.1.1.1,nw_ttl=64", []string{"drop"}, nil},
		{
			"ARP for a known endpoint", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.1.1.1,arp_tpa=10.1.1.3,arp_sha=02:02:0a:01:01:01",
			[]string{"set_field:00:00:11:11:11:11->eth_src", "IN_PORT"},
			nil,
		},
		{
			"ARP for the gateway", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.1.1.1,arp_tpa=10.1.1.254,arp_sha=02:02:0a:01:01:01",
			[]string{"IN_PORT"},
			nil,
		},
		{
			"ARP for the link's router", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.1.1.1,arp_tpa=169.254.1.1,arp_sha=02:02:0a:01:01:01",
			[]string{"IN_PORT"},
			nil,
		},
		{"ARP for nobody", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.1.1.1,arp_tpa=10.1.1.77,arp_sha=02:02:0a:01:01:01", []string{"drop"}, nil},
		{"ARP probe of its own address", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=0.0.0.0,arp_tpa=10.1.1.1,arp_sha=02:02:0a:01:01:01", []string{"drop"}, nil},
		{"ARP announcement", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.1.1.1,arp_tpa=10.1.1.1,arp_sha=02:02:0a:01:01:01", []string{"drop"}, nil},
		{
			"neighbor solicitation", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=33:33:ff:00:00:03,icmp6,ipv6_src=2001:db8:1::1,ipv6_dst=ff02::1:ff00:3,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8:1::3,nd_sll=02:02:0a:01:01:01,nw_ttl=255",
			[]string{"set_field:136->icmpv6_type", "set_field:00:00:11:11:11:11->nd_tll", "IN_PORT"},
			nil,
		},
		{"duplicate address detection", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=33:33:ff:00:00:01,icmp6,ipv6_src=::,ipv6_dst=ff02::1:ff00:1,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8:1::1,nw_ttl=255", []string{"drop"}, nil},
		{"router advertisement of a container", "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=33:33:00:00:00:01,icmp6,ipv6_src=fe80::1,ipv6_dst=ff02::1,icmpv6_type=134,icmpv6_code=0,nw_ttl=255", []string{"drop"}, nil},
		{"ping of the gateway", a + "icmp,nw_src=10.1.1.1,nw_dst=10.1.1.254,icmp_type=8,icmp_code=0,nw_ttl=64", []string{"set_field:0->icmp_type", "IN_PORT"}, nil},
		{"frame from a group address", "in_port=1,dl_src=03:00:00:00:00:01,dl_dst=00:00:11:11:11:11,ip,nw_src=10.1.1.1,nw_dst=10.1.1.2", []string{"drop"}, nil},
		{"tagged frame", a + "dl_vlan=5,ip,nw_src=10.1.1.1,nw_dst=10.1.1.2,nw_ttl=64", []string{"drop"}, nil},
		{"port without endpoint", "in_port=9,dl_src=02:02:0a:01:01:09,dl_dst=00:00:11:11:11:11,ip,nw_src=10.1.1.9,nw_dst=10.1.1.2,nw_ttl=64", []string{"drop"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { checkTrace(t, sw.Trace("br", c.packet), c.want, c.not) })
	}
}

// What a container sends is limited by a meter and marked, in both families; what it
// receives is limited by another meter.
func TestTraceQoS(t *testing.T) {
	sw := ovstest.Start(t)
	p := vrouter(t)
	programs := routedFlows(p)
	programs["ep/"+local1.ID] = p.Program(limited(local1, QoS{Rate: 10485, Burst: 100, DSCP: 46}))
	realBridge(t, sw, "br", programs)
	for i := range 4 {
		sw.AddDummyPort("br", fmt.Sprintf("p%d", i+1), fmt.Sprint(i+1))
	}
	const a, b = "in_port=1,dl_src=02:02:0a:01:01:01,dl_dst=00:00:11:11:11:11,", "in_port=2,dl_src=02:02:0a:01:01:02,dl_dst=00:00:11:11:11:11,"
	checkTrace(t, sw.Trace("br", a+"udp,nw_src=10.1.1.1,nw_dst=10.1.1.2,nw_ttl=64"), []string{"Datapath actions: meter(", "tos=0xb8", "-> output port is 2"}, nil)
	checkTrace(t, sw.Trace("br", a+"udp6,ipv6_src=2001:db8:1::1,ipv6_dst=2001:db8:1::2,nw_ttl=64"), []string{"Datapath actions: meter(", "tclass=0xb8", "-> output port is 2"}, nil)
	checkTrace(t, sw.Trace("br", b+"udp,nw_src=10.1.1.2,nw_dst=10.1.1.1,nw_ttl=64"), []string{"meter:30721", "-> output port is 1"}, []string{"meter:1\n", "meter:2\n", "set(ipv4"})
}

func checkTrace(t *testing.T, trace string, want, not []string) {
	t.Helper()
	for _, w := range want {
		ok := strings.Contains(trace, w)
		if w == "drop" {
			ok = strings.Contains(trace, "Datapath actions: drop")
		}
		if !ok {
			t.Errorf("the trace lacks %q:\n%s", w, trace)
		}
	}
	for _, n := range not {
		if strings.Contains(trace, n) {
			t.Errorf("the trace has %q:\n%s", n, trace)
		}
	}
}

// Decisions of the bridged pipeline. Only an access port's tag separates networks, so the
// ports get tags, as the driver would set them.
func TestTraceBridged(t *testing.T) {
	sw := ovstest.Start(t)
	realBridge(t, sw, "br", bridgedFlows(newPipeline(t, Settings{Encap: VLAN, Round: 1})))
	for i, tag := range []int{101, 101, 102} {
		sw.AddDummyPort("br", fmt.Sprintf("p%d", i+1), fmt.Sprint(i+1))
		sw.Vsctl("set", "Port", fmt.Sprintf("p%d", i+1), "vlan_mode=access", fmt.Sprintf("tag=%d", tag))
	}
	sw.AddDummyPort("br", "eth2", "65010")
	sw.Vsctl("set", "Port", "eth2", "vlan_mode=trunk")
	for _, c := range []struct {
		name, packet string
		want, not    []string
	}{
		{
			"ARP for a neighbor is answered", "in_port=1,dl_src=02:02:0a:02:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.2.1.1,arp_tpa=10.2.1.2,arp_sha=02:02:0a:02:01:01",
			[]string{"set_field:02:02:0a:02:01:02->eth_src", "IN_PORT"},
			[]string{"NORMAL"},
		},
		{
			"ARP for an unknown address goes to the network", "in_port=1,dl_src=02:02:0a:02:01:01,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.2.1.1,arp_tpa=10.2.1.99,arp_sha=02:02:0a:02:01:01",
			[]string{"NORMAL", "push_vlan(vid=101"},
			[]string{"IN_PORT"},
		},
		{
			"ARP sees its own network only", "in_port=3,dl_src=02:02:0a:02:01:02,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=10.2.1.2,arp_tpa=10.2.1.1,arp_sha=02:02:0a:02:01:02",
			[]string{"NORMAL", "push_vlan(vid=102"},
			[]string{"IN_PORT"},
		},
		{"broadcast leaves tagged", "in_port=1,dl_src=02:02:0a:02:01:01,dl_dst=ff:ff:ff:ff:ff:ff,ip,nw_src=10.2.1.1,nw_dst=255.255.255.255", []string{"push_vlan(vid=101"}, []string{"vid=102"}},
		{"from the uplink", "in_port=65010,dl_vlan=101,dl_src=02:02:0a:02:01:03,dl_dst=ff:ff:ff:ff:ff:ff,ip,nw_src=10.2.1.3,nw_dst=255.255.255.255", []string{"pop_vlan"}, nil},
		{"port without endpoint", "in_port=9,dl_src=02:02:0a:01:01:09,dl_dst=ff:ff:ff:ff:ff:ff,ip,nw_src=10.1.1.9,nw_dst=10.1.1.2", []string{"drop"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { checkTrace(t, sw.Trace("br", c.packet), c.want, c.not) })
	}
}
