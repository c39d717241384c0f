package ofnet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// A range is split into few masked ports that cover it exactly.
func TestMaskedPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low, high := rapid.Uint16().Draw(t, "low"), rapid.Uint16().Draw(t, "high")
		if low > high {
			low, high = high, low
		}
		all := PortRange{Low: low, High: high}.masked()
		if len(all) > 30 {
			t.Fatalf("%d masked ports", len(all))
		}
		ports := []uint16{0, 1, low - 1, low, low + 1, high - 1, high, high + 1, 65535, rapid.Uint16().Draw(t, "port")}
		for _, port := range ports {
			n := 0
			for _, m := range all {
				if port&m.mask == m.value {
					n++
				}
			}
			if want := boolInt(low <= port && port <= high); n != want {
				t.Fatalf("port %d of %d-%d is in %d of %+v", port, low, high, n, all)
			}
		}
	})
}

// endpointPolicyBridges are modes with four endpoints here and four on other hosts.
func endpointPolicyBridges(t testing.TB) map[string]*policyBridge {
	bridges := policyBridges(t)
	bridges["vlrouter"] = &policyBridge{network: vlNet1, endpoints: bridges["vlan"].endpoints}
	for mode, b := range bridges {
		b.p = newPipeline(t, Settings{
			Encap: b.network.Encap, Routing: strings.HasSuffix(mode, "router"), TunnelPort: testTunnelPort, HostMAC: HostMAC(addr("192.168.60.10")), Round: 1, EndpointPolicies: true,
		})
	}
	return bridges
}

func randomPolicyRuleSet(rng *rand.Rand, number uint32, out bool) PolicyRuleSet {
	s := PolicyRuleSet{ID: fmt.Sprint("s", number), Number: number, Out: out}
	for range rng.IntN(4) {
		var a Allow
		for range rng.IntN(5) {
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 1, byte(rng.IntN(9))}), []int{0, 24, 29, 30, 31, 32}[rng.IntN(6)])
			if rng.IntN(2) == 0 {
				p = netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("2001:db8:1::%d", rng.IntN(9))), []int{0, 64, 125, 126, 128}[rng.IntN(5)])
			}
			a.Peers = append(a.Peers, p.Masked())
		}
		for class := range uint32(4) {
			if rng.IntN(4) == 0 {
				a.Classes = append(a.Classes, class+1)
			}
		}
		for range rng.IntN(4) {
			low := []uint16{0, 21, 22, 79, 80}[rng.IntN(5)]
			a.Ports = append(a.Ports, PortRange{
				Proto: []uint8{of.ProtoTCP, of.ProtoUDP, of.ProtoSCTP}[rng.IntN(3)], Low: low, High: []uint16{low, 80, 443, 65535}[rng.IntN(4)],
			})
			if r := &a.Ports[len(a.Ports)-1]; r.High < r.Low {
				r.High = r.Low
			}
		}
		s.Allows = append(s.Allows, a)
	}
	return s
}

// guard gives the local endpoints random sets, and returns them.
func guard(t *testing.T, s *Switch, b *policyBridge, rng *rand.Rand) map[string][2]*PolicyRuleSet {
	t.Helper()
	by := map[string][2]*PolicyRuleSet{}
	for i, e := range b.endpoints[:4] {
		g, sets := EndpointPolicy{Endpoint: e}, [2]*PolicyRuleSet{}
		for dir := range sets {
			owner := fmt.Sprint("rule-set/", i, dir)
			s.Remove(owner)
			if rng.IntN(3) == 0 {
				continue
			}
			set := randomPolicyRuleSet(rng, uint32(LowestPolicyRuleSet+2*i+dir), dir == 1)
			sets[dir] = &set
			s.Set(owner, b.p.Program(set))
			if dir == 0 {
				g.In = set.Number
			} else {
				g.Out = set.Number
			}
		}
		by[e.ID] = sets
		s.Set("endpoint-policy/"+e.ID, b.p.Program(g))
	}
	return by
}

// classify puts the addresses of endpoints into random classes, in the VRF and in another one
// into others, and returns the former.
func classify(s *Switch, b *policyBridge, rng *rand.Rand) map[netip.Addr]uint32 {
	classes := map[netip.Addr]uint32{}
	for _, e := range b.endpoints {
		for _, a := range []netip.Addr{e.IPv4, e.IPv6} {
			peer := PolicyPeer{ID: "blue " + a.String(), VRF: b.network.VRF + 1, Addr: a, Class: uint32(1 + rng.IntN(4))}
			s.Set("policy-peer/"+peer.ID, b.p.Program(peer))
			peer.ID, peer.VRF, peer.Class = a.String(), b.network.VRF, uint32(rng.IntN(5))
			if classes[a] = peer.Class; peer.Class == 0 {
				s.Remove("policy-peer/" + peer.ID)
			} else {
				s.Set("policy-peer/"+peer.ID, b.p.Program(peer))
			}
		}
	}
	return classes
}

// sctp changes some UDP probes to SCTP.
func sctp(rng *rand.Rand, p probe, packet string) (probe, string) {
	if p.proto != of.ProtoUDP || rng.IntN(2) == 0 {
		return p, packet
	}
	p.proto = of.ProtoSCTP
	return p, strings.ReplaceAll(packet, "udp", "sctp")
}

// endpointPoliciesAgree: the switch decides on new connections as the evaluator does at both
// ends, with and without rules of the VRF, in every mode and for every protocol.
func endpointPoliciesAgree(t *testing.T, e evaluator) {
	sw := ovstest.Start(t)
	for mode, b := range endpointPolicyBridges(t) {
		t.Run(mode, func(t *testing.T) {
			s := b.start(t, sw, mode)
			passes := tableGoto(b.p, b.p.first(stageReply))
			var rules []Rule
			verdicts := map[bool]int{}
			for round := range 10 {
				rng := rand.New(rand.NewPCG(uint64(round), 12))
				guards, classes := guard(t, s, b, rng), classify(s, b, rng)
				before := rules
				if rules = nil; round%2 == 1 {
					rules = randomRules(rng, 3)
				}
				enforce(t, s, b, before, rules)
				if rules == nil {
					s.Set("vrf", b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: uint32(round + 1), EndpointPoliciesOnly: true}))
					settle(t, s)
				}
				for range 25 {
					p, packet := b.packetIn(rng, mode)
					p, packet = sctp(rng, p, packet)
					p.srcClass, p.dstClass = classes[p.src], classes[p.dst]
					out, in := guards[p.from][1], guards[p.to][0]
					want := out != nil && !e.allows(*out, p) || in != nil && !e.allows(*in, p) || e.judged(rules, p) != allowed
					verdicts[want]++
					trace := sw.Trace(mode, packet, "--ct-next", "trk,new")
					if got := !strings.Contains(trace, passes); got != want {
						t.Fatalf("denied %t, expected %t, by\n%+v\nout %+v\nin %+v\nrules %+v\n%s", got, want, p, out, in, rules, trace)
					}
					if n := strings.Count(trace, "ct(commit,zone=NXM"); n > 1 {
						t.Fatalf("committed %d times:\n%s", n, trace)
					}
				}
			}
			if verdicts[true] < 30 || verdicts[false] < 30 {
				t.Errorf("denied %d, allowed %d: the test says little", verdicts[true], verdicts[false])
			}
		})
	}
}

func (b *policyBridge) byID(id string) Endpoint {
	i := slices.IndexFunc(b.endpoints, func(e Endpoint) bool { return e.ID == id })
	return b.endpoints[i]
}

// packetIn is packet for all four modes.
func (b *policyBridge) packetIn(rng *rand.Rand, mode string) (probe, string) {
	if mode != "vlrouter" {
		return b.packet(rng, mode)
	}
	p, text := b.packet(rng, "vlan")
	router := RouterMAC
	if !b.byID(p.from).Local() {
		router = b.p.set.HostMAC
	}
	return p, strings.Replace(text, "dl_dst="+b.byID(p.to).MAC.String(), "dl_dst="+router.String(), 1)
}

// An allowed connection passes in both directions, even if a set allows only one; a
// connection that is no longer allowed ends; connections of others are not even tracked.
func TestEndpointPoliciesAndConnections(t *testing.T) {
	sw := ovstest.Start(t)
	for _, mode := range []string{"vrouter", "vxlan"} {
		b := endpointPolicyBridges(t)[mode]
		t.Run(mode, func(t *testing.T) {
			s := b.start(t, sw, mode)
			client, server := b.endpoints[1], b.endpoints[2]
			w := b.wire(t, sw, mode, client, server)
			generation := uint32(0)
			hold := func(g EndpointPolicy, sets ...PolicyRuleSet) {
				t.Helper()
				for _, set := range sets {
					s.Set("rule-set/"+set.ID, b.p.Program(set))
				}
				s.Set("endpoint-policy/"+g.Endpoint.ID, b.p.Program(g))
				generation++
				s.Set("vrf", b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: generation, EndpointPoliciesOnly: true}))
				settle(t, s)
			}
			tracked := func() string { return sw.Appctl("dpctl/dump-conntrack") }
			hold(EndpointPolicy{Endpoint: b.endpoints[0]})
			w.check("neither is guarded", true, true)
			if got := tracked(); got != "" {
				t.Errorf("connections of nobody guarded are tracked:\n%s", got)
			}
			nothing := PolicyRuleSet{ID: "nothing", Number: 20, Out: true}
			dns := PolicyRuleSet{ID: "dns", Number: 21, Allows: []Allow{{Ports: []PortRange{{of.ProtoUDP, 53, 53}}}}}
			hold(EndpointPolicy{Endpoint: server, Out: nothing.Number}, nothing)
			if w.answer() {
				t.Error("a connection passes that its sender may not open")
			}
			w.check("the server may open none", true, true)
			if got := strings.Count(tracked(), "src="); got != 2 {
				t.Errorf("not one connection is tracked:\n%s", tracked())
			}
			hold(EndpointPolicy{Endpoint: server, In: dns.Number, Out: nothing.Number}, dns)
			w.check("the server takes questions only", true, true)
			dns.Allows[0].Ports[0].Proto = of.ProtoTCP
			hold(EndpointPolicy{Endpoint: server, In: dns.Number, Out: nothing.Number}, dns)
			w.check("no longer by UDP", false, false)
			hold(EndpointPolicy{Endpoint: server})
			w.check("all is allowed again", true, true)
		})
	}
}

// The host and its containers can always talk, and the agent's name server does not answer
// containers that may not ask it.
func TestEndpointPoliciesAndTheHost(t *testing.T) {
	sw := ovstest.Start(t)
	b := endpointPolicyBridges(t)["vrouter"]
	b.p = newPipeline(t, Settings{
		Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort, Round: 1, EndpointPolicies: true, DNS: DNSSettings{Rate: 1000},
	})
	s := b.start(t, sw, "br")
	pod, node, other := b.endpoints[0], b.endpoints[1], b.endpoints[2]
	s.Set("in", b.p.Program(PolicyRuleSet{ID: "in", Number: 20}))
	s.Set("out", b.p.Program(PolicyRuleSet{ID: "out", Number: 21, Out: true}))
	s.Set("guard", b.p.Program(EndpointPolicy{Endpoint: pod, In: 20, Out: 21}))
	s.Set("node", b.p.Program(OwnNode{Endpoints: []Endpoint{node}, Addrs: []netip.Addr{addr("10.1.1.8")}}))
	s.Set("vrf", b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: 1, EndpointPoliciesOnly: true}))
	settle(t, s)
	for name, c := range map[string]struct {
		from   Endpoint
		dst    netip.Addr
		port   int
		passes bool
	}{
		"to the node's endpoint":   {pod, node.IPv4, 80, true},
		"from the node's endpoint": {node, pod.IPv4, 80, true},
		"to an address of it":      {pod, addr("10.1.1.8"), 80, true},
		"to another one":           {pod, other.IPv4, 80, false},
		"from another one":         {other, pod.IPv4, 80, false},
		"a query for a name":       {pod, other.IPv4, 53, false},
	} {
		t.Run(name, func(t *testing.T) {
			trace := sw.Trace("br", fmt.Sprintf("udp,in_port=%d,dl_src=%s,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=64,udp_dst=%d", c.from.Port, c.from.MAC, RouterMAC, c.from.IPv4, c.dst, c.port), "--ct-next", "trk,new")
			if got := strings.Contains(trace, tableGoto(b.p, b.p.first(stageReply))); got != c.passes {
				t.Errorf("passes %t:\n%s", got, trace)
			}
			if strings.Contains(trace, "controller(") {
				t.Errorf("the agent is asked:\n%s", trace)
			}
		})
	}
}

// The numbers of peers and ports add up and do not multiply.
func TestPolicyRuleSetSize(t *testing.T) {
	p := endpointPolicyBridges(t)["vrouter"].p
	var a Allow
	for i := range 1000 {
		a.Peers = append(a.Peers, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}), 32))
	}
	for i := range 20 {
		a.Ports = append(a.Ports, PortRange{of.ProtoTCP, uint16(1000 + 2*i), uint16(1000 + 2*i)})
	}
	if got := len(p.Program(PolicyRuleSet{ID: "s", Number: 20, Allows: []Allow{a, a}}).Flows); got != 1000+20+2 {
		t.Errorf("%d flows", got)
	}
	a.Peers, a.Classes = nil, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	if got := len(p.Program(PolicyRuleSet{ID: "s", Number: 20, Allows: []Allow{a, a}}).Flows); got != 9+2*20+2 { // ports are of a family
		t.Errorf("%d flows", got)
	}
}

// endpointPolicyFlows are the flows of a bridge with sets of all kinds.
func endpointPolicyFlows(t *testing.T) map[string]Program {
	b := endpointPolicyBridges(t)["vlan"]
	flows := b.programs()
	flows["vrf"] = b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: 5, EndpointPoliciesOnly: true})
	flows["node"] = b.p.Program(OwnNode{Endpoints: b.endpoints[3:4], Addrs: []netip.Addr{addr("10.9.9.9"), addr("2001:db8::9")}})
	flows["guard"] = b.p.Program(EndpointPolicy{Endpoint: b.endpoints[0], In: 16, Out: 17})
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range uint32(20) {
		s := randomPolicyRuleSet(rng, LowestPolicyRuleSet+i, i%2 == 1)
		flows["rule-set/"+s.ID] = b.p.Program(s)
	}
	return flows
}
