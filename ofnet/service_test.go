package ofnet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

func providers(addrs ...string) (all []Provider) {
	for _, a := range addrs {
		all = append(all, Provider{Addr: netip.MustParseAddrPort(a)})
	}
	SortProviders(all)
	return all
}

// webService has a frontend of each kind: a group and a draw, both with affinity, one
// without providers, and one whose provider is draining.
func webService(n Network, affinity time.Duration) Service {
	prefix := n.Gateway4.As4()
	at := func(last int, port int) string {
		return fmt.Sprintf("%d.%d.%d.%d:%d", prefix[0], prefix[1], prefix[2], last, port)
	}
	vip := func(port int) netip.AddrPort { return netip.MustParseAddrPort(at(200, port)) }
	draining := providers(at(2, 8080), at(3, 8080))
	draining[1].Draining = true
	return Service{ID: "web:" + n.ID, VRF: n.VRF, Affinity: affinity, Frontends: []Frontend{
		{Number: 101, Proto: of.ProtoTCP, Addr: vip(80), Providers: providers(at(1, 8080), at(2, 8080))},
		{Number: 102, Proto: of.ProtoUDP, Addr: vip(53), Providers: providers(at(2, 5353), at(3, 5353))},
		{Number: 103, Proto: of.ProtoTCP, Addr: vip(81)},
		{Number: 104, Proto: of.ProtoTCP, Addr: vip(82), Drop: true},
		{Number: 105, Proto: of.ProtoSCTP, Addr: vip(90), Providers: draining},
		{Number: 106, Proto: of.ProtoTCP, Addr: netip.MustParseAddrPort("[2001:db8:1::200]:80"), Providers: providers("[2001:db8:1::1]:8080", "[2001:db8:1::2]:8080")},
		{Number: 107, Proto: of.ProtoUDP, Addr: netip.MustParseAddrPort("[2001:db8:1::200]:53"), Providers: providers("[2001:db8:1::2]:5353", "[2001:db8:1::3]:5353")},
	}}
}

// renumbered is a service whose frontends have numbers of their own.
func renumbered(s Service) Service {
	for i := range s.Frontends {
		s.Frontends[i].Number += 100
	}
	return s
}

// Where a packet to a service goes, according to the switch's own tracer.
func TestTraceService(t *testing.T) {
	sw := ovstest.Start(t)
	bridges := policyBridges(t)
	flood := *bridges["vlan"]
	flood.p = newPipeline(t, Settings{Encap: VLAN, ARPFlood: true, Round: 1})
	bridges["flood"] = &flood
	for mode, b := range bridges {
		t.Run(mode, func(t *testing.T) {
			programs := b.programs()
			network := b.network
			network.Gateway4 = addr("10.1.1.254")
			programs["svc"] = b.p.Program(webService(network, 0))
			sticky := renumbered(webService(network, time.Hour))
			for i := range sticky.Frontends {
				sticky.Frontends[i].Addr = netip.AddrPortFrom(sticky.Frontends[i].Addr.Addr().Next(), sticky.Frontends[i].Addr.Port())
			}
			programs["sticky"] = b.p.Program(sticky)
			realBridge(t, sw, mode, programs)
			for i := range 4 {
				sw.AddDummyPort(mode, fmt.Sprint(mode, i), fmt.Sprint(i+1))
			}
			client := b.endpoints[3]
			from := func(p string) string {
				return fmt.Sprintf("in_port=%d,dl_src=%s,dl_dst=%s,%s", client.Port, client.MAC, RouterMAC, p)
			}
			v4, v6 := "nw_src="+client.IPv4.String()+",nw_ttl=64,", "ipv6_src="+client.IPv6.String()+",nw_ttl=64,"
			for _, c := range []struct {
				name, packet string
				states       []string
				want, not    []string
			}{
				{"a new connection", "tcp," + v4 + "nw_dst=10.1.1.200,tcp_dst=80", []string{"trk,new"}, []string{"zone=32", "group:", "hash(sym_l4"}, []string{"CONTROLLER"}},
				{"one of UDP", "udp," + v4 + "nw_dst=10.1.1.200,udp_dst=53", []string{"trk,new"}, []string{"multipath(", "nat(dst=10.1.1.", ":5353"}, nil},
				{"to none", "tcp," + v4 + "nw_dst=10.1.1.200,tcp_dst=81", []string{"trk,new"}, []string{"CONTROLLER"}, nil},
				{"to none, silently", "tcp," + v4 + "nw_dst=10.1.1.200,tcp_dst=82", []string{"trk,new"}, []string{"Datapath actions: drop"}, []string{"CONTROLLER"}},
				{"to the one that takes some", "sctp," + v4 + "nw_dst=10.1.1.200,sctp_dst=90", []string{"trk,new"}, []string{"group:", "hash(sym_l4"}, nil},
				{"another port", "tcp," + v4 + "nw_dst=10.1.1.200,tcp_dst=8", []string{"trk,new"}, []string{"CONTROLLER"}, nil},
				{"IPv6", "tcp6," + v6 + "ipv6_dst=2001:db8:1::200,tcp_dst=80", []string{"trk,new"}, []string{"group:"}, nil},
				{"UDP over IPv6", "udp6," + v6 + "ipv6_dst=2001:db8:1::200,udp_dst=53", []string{"trk,new"}, []string{"nat(dst=[2001:db8:1::", ":5353"}, nil},
				{"ping", "icmp,icmp_type=8,icmp_code=0," + v4 + "nw_dst=10.1.1.200", []string{"trk,new"}, []string{"icmp_type"}, []string{"CONTROLLER"}},
				{"with affinity", "tcp," + v4 + "nw_dst=10.1.1.201,tcp_dst=80", []string{"trk,new"}, []string{"resubmit(,", "group:"}, nil},
				{"UDP with affinity", "udp," + v4 + "nw_dst=10.1.1.201,udp_dst=53", []string{"trk,new"}, []string{"idle_timeout=3600", "nat(dst=10.1.1."}, nil},
				{"connection to a provider that is gone", "tcp," + v4 + "nw_dst=10.1.1.200,tcp_dst=80", []string{"trk,est"}, []string{"CONTROLLER"}, nil},
			} {
				t.Run(c.name, func(t *testing.T) {
					var options []string
					for _, s := range c.states {
						options = append(options, "--ct-next", s)
					}
					trace := sw.Trace(mode, from(c.packet), options...)
					for _, w := range c.want {
						if !strings.Contains(trace, w) {
							t.Errorf("no %q in\n%s", w, trace)
						}
					}
					for _, w := range c.not {
						if strings.Contains(trace, w) {
							t.Errorf("%q in\n%s", w, trace)
						}
					}
				})
			}
			arp := sw.Trace(mode, fmt.Sprintf("in_port=%d,dl_src=%s,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=%s,arp_sha=%s,arp_tpa=10.1.1.200", client.Port, client.MAC, client.IPv4, client.MAC))
			if !strings.Contains(arp, "set_field:02:02:0a:01:01:c8->eth_src") || !strings.Contains(arp, "IN_PORT") {
				t.Errorf("no answer to ARP:\n%s", arp)
			}
			nd := sw.Trace(mode, fmt.Sprintf("in_port=%d,dl_src=%s,dl_dst=33:33:ff:00:02:00,icmp6,ipv6_src=%s,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8:1::200,nd_sll=%s", client.Port, client.MAC, client.IPv6, client.MAC))
			if !strings.Contains(nd, "set_field:"+RouterMAC.String()+"->nd_tll") || !strings.Contains(nd, "IN_PORT") {
				t.Errorf("no answer to a solicitation:\n%s", nd)
			}
		})
	}
}

// Numbers of providers stay while others come and go.
func TestProviderNumbers(t *testing.T) {
	all := providers("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "[2001:db8::1]:80")
	before := numberProviders(all)
	after := numberProviders(all[1:])
	for i := range after {
		if after[i] != before[i+1] || after[i] == 0 {
			t.Errorf("provider %d is number %#x, then %#x", i+1, before[i+1], after[i])
		}
	}
}

// A change of a service ends only the connections to providers that are gone.
func TestGoneConnections(t *testing.T) {
	before := Service{VRF: 2, Frontends: []Frontend{{Number: 1, Proto: of.ProtoTCP, Addr: netip.MustParseAddrPort("10.0.0.9:80"), Providers: providers("10.0.0.1:8080", "10.0.0.2:8080")}}}
	now := before
	now.Frontends = []Frontend{before.Frontends[0]}
	now.Frontends[0].Providers = providers("10.0.0.2:8080", "10.0.0.3:8080")
	now.Frontends[0].Providers[0].Draining = true
	gone := GoneConnections(before, now)
	if len(gone) != 1 || gone[0].Reply.Src != addr("10.0.0.1") || gone[0].Orig.DstPort != 80 || gone[0].Zone != 1<<15|2 {
		t.Errorf("gone: %+v", gone)
	}
	if all := GoneConnections(now, Service{}); len(all) != 2 {
		t.Errorf("%d connections of a service that is gone, expected 2", len(all))
	}
}
