package ofnet

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// probe is the first packet of a connection, with the fields that rules match.
type probe struct {
	from, to           string // ids of endpoints
	srcGroup, dstGroup uint32
	src, dst           netip.Addr
	proto              uint8
	srcPort, dstPort   uint16
	srcClass, dstClass uint32 // of peers of policies
}

// verdict is the decision about a connection.
type verdict int

const (
	allowed verdict = iota
	rejected
	denied
)

// evaluator is what says, independently of flows, what is decided about a connection: whether
// a set allows it, and what rules decide. It is ofnet/judge, which imports this package.
type evaluator interface {
	allows(s PolicyRuleSet, p probe) bool
	judged(rules []Rule, p probe) verdict
}

// policyBridge is a mode with endpoints of three groups on this host and others.
type policyBridge struct {
	p         *Pipeline
	network   Network
	endpoints []Endpoint
}

// policyGroups are none and three others: netmaster's group numbers have 16 bits, and all
// of them must be compared.
var policyGroups = [4]uint32{0, 1, 1<<15 + 1, 1<<16 - 1}

func policyBridges(t testing.TB) map[string]*policyBridge {
	bridges := map[string]*policyBridge{
		"vrouter": {p: vrouter(t), network: vxNet1}, "vxlan": {p: vxbridge(t), network: vxNet1},
		"vlan": {p: newPipeline(t, Settings{Encap: VLAN, Round: 1}), network: vlNet1},
	}
	for _, b := range bridges {
		for i := range 8 {
			port, vtep := uint32(i+1), ""
			if i >= 4 {
				port, vtep = 0, "192.168.60.11"
			}
			e := endpointOf(b.network, fmt.Sprint("e", i), fmt.Sprintf("10.1.1.%d", i+1), fmt.Sprintf("2001:db8:1::%d", i+1), port, vtep)
			e.Group, e.Policed = policyGroups[i%4], true
			b.endpoints = append(b.endpoints, e)
		}
	}
	return bridges
}

func (b *policyBridge) programs() map[string]Program {
	flows := map[string]Program{"fixed": b.p.Program(Base{}), "uplink": b.p.Program(uplink), "net": b.p.Program(b.network), "peer": b.p.Program(Peer{VTEP: addr("192.168.60.11")})}
	for _, e := range b.endpoints {
		flows["ep/"+e.ID] = b.p.Program(e)
	}
	return flows
}

// start programs the bridge on a real switch, with the ports of its endpoints.
func (b *policyBridge) start(t *testing.T, sw *ovstest.Switch, name string) *Switch {
	t.Helper()
	s := realBridge(t, sw, name, b.programs())
	for _, e := range b.endpoints {
		if e.Local() {
			sw.AddDummyPort(name, name+e.ID, fmt.Sprint(e.Port))
		}
	}
	return s
}

// policedFlows are the flows of a bridge with rules of all kinds.
func policedFlows(t *testing.T) map[string]Program {
	b := policyBridges(t)["vlan"]
	flows := b.programs()
	flows["vrf"] = b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: 5})
	rules := append(randomRules(rand.New(rand.NewPCG(5, 5)), 60), webRule, denyRule)
	for _, f := range []string{"syn,ack", "ack", "!syn,ack"} {
		rules = append(rules, Rule{ID: f, Priority: 100, Proto: 6, Flags: f})
	}
	seen := map[of.FlowKey]bool{} // of two equal rules, either may have the flow
	for _, r := range rules {
		program := b.p.Program(r)
		if slices.ContainsFunc(program.Flows, func(f of.Flow) bool { return seen[f.Key()] }) {
			continue
		}
		for _, f := range program.Flows {
			seen[f.Key()] = true
		}
		flows["rule/"+r.ID] = program
	}
	return flows
}

// enforce replaces the rules of a bridge.
func enforce(t *testing.T, s *Switch, b *policyBridge, before, rules []Rule) {
	t.Helper()
	for _, r := range before {
		s.Remove("rule/" + r.ID)
	}
	var set RuleSet
	for _, r := range rules {
		set.Add(r)
		s.Set("rule/"+r.ID, b.p.Program(r))
	}
	if set.Empty() {
		s.Remove("vrf")
	} else {
		s.Set("vrf", b.p.Program(VRFPolicy{VRF: b.network.VRF, Generation: set.Generation()}))
	}
	settle(t, s)
}

func randomRules(rng *rand.Rand, n int) []Rule {
	prefix := func(six bool) netip.Prefix {
		if six {
			return netip.MustParsePrefix(fmt.Sprintf("2001:db8:1::%d/%d", rng.IntN(9), 120+rng.IntN(9))).Masked()
		}
		return netip.MustParsePrefix(fmt.Sprintf("10.1.1.%d/%d", rng.IntN(9), 24+rng.IntN(9))).Masked()
	}
	var rules []Rule
	for i := range n {
		r := Rule{ID: fmt.Sprint("r", i), Priority: uint8(1 + rng.IntN(4)), Deny: rng.IntN(2) == 0}
		r.Reject = r.Deny && rng.IntN(2) == 0
		r.SrcGroup, r.DstGroup = policyGroups[rng.IntN(4)], policyGroups[rng.IntN(4)]
		r.Proto = []uint8{0, 1, 6, 17}[rng.IntN(4)]
		six := rng.IntN(2) == 0
		if rng.IntN(4) == 0 {
			r.Src = prefix(six)
		}
		if rng.IntN(4) == 0 {
			r.Dst = prefix(six)
		}
		if r.Proto == 6 || r.Proto == 17 {
			r.DstPort = []uint16{0, 80, 443}[rng.IntN(3)]
			r.SrcPort = []uint16{0, 0, 0, 1000}[rng.IntN(4)]
		}
		if r.Proto == 6 && r.DstPort == 0 {
			r.Flags = "syn,!ack"
		}
		rules = append(rules, r)
	}
	return rules
}

// packet makes a probe from one endpoint to another as it arrives at the bridge.
func (b *policyBridge) packet(rng *rand.Rand, mode string) (probe, string) {
	from, to := b.endpoints[rng.IntN(8)], b.endpoints[rng.IntN(4)]
	for from.ID == to.ID {
		from = b.endpoints[rng.IntN(8)]
	}
	if from.Local() && rng.IntN(2) == 0 {
		to = b.endpoints[4+rng.IntN(4)]
	}
	p := probe{from: from.ID, to: to.ID, srcGroup: from.Group, dstGroup: to.Group, src: from.IPv4, dst: to.IPv4, srcPort: 1000 + uint16(rng.IntN(2)), dstPort: []uint16{80, 443, 22}[rng.IntN(3)]}
	six, suffix := rng.IntN(2) == 0, ""
	if six {
		p.src, p.dst = from.IPv6, to.IPv6
	}
	if !b.p.set.Routing && rng.IntN(3) == 0 { // the MAC address determines the receiver
		p.dst = elsewhere(rng, six, b.endpoints)
		if six && !from.Local() {
			p.src = addr("fe80::77")
		}
	}
	text := fmt.Sprintf("nw_ttl=64,nw_src=%s,nw_dst=%s", p.src, p.dst)
	if six {
		suffix, text = "6", fmt.Sprintf("nw_ttl=64,ipv6_src=%s,ipv6_dst=%s", p.src, p.dst)
	}
	switch rng.IntN(3) {
	case 0:
		p.proto, text = 6, fmt.Sprintf("tcp%s,%s,tcp_flags=syn,tcp_src=%d,tcp_dst=%d", suffix, text, p.srcPort, p.dstPort)
	case 1:
		p.proto, text = 17, fmt.Sprintf("udp%s,%s,udp_src=%d,udp_dst=%d", suffix, text, p.srcPort, p.dstPort)
	default:
		if p.proto, text = 1, "icmp,icmp_type=8,icmp_code=0,"+text; suffix == "6" {
			p.proto, text = 58, "icmp6,icmpv6_type=128,icmpv6_code=0,"+text[len("icmp,icmp_type=8,icmp_code=0,"):]
		}
	}
	dst := to.MAC
	if mode == "vrouter" {
		dst = RouterMAC
	}
	text += fmt.Sprintf(",dl_src=%s,dl_dst=%s", from.MAC, dst)
	switch {
	case from.Local():
		text += fmt.Sprint(",in_port=", from.Port)
	case mode == "vlan":
		text += fmt.Sprintf(",in_port=%d,dl_vlan=%d", uplink.Port, b.network.Tag)
	default:
		text += fmt.Sprintf(",in_port=%d,tun_src=%s,tun_dst=192.168.60.10,tun_id=%d", testTunnelPort, from.VTEP, b.network.VNI)
	}
	return p, text
}

// elsewhere is an address that no endpoint has, or that of another one.
func elsewhere(rng *rand.Rand, six bool, endpoints []Endpoint) netip.Addr {
	other := endpoints[rng.IntN(len(endpoints))]
	if six {
		return []netip.Addr{addr("fe80::99"), addr("ff02::1"), addr("ff05::7"), other.IPv6}[rng.IntN(4)]
	}
	return []netip.Addr{addr("169.254.1.1"), addr("224.0.0.5"), addr("239.1.1.1"), other.IPv4}[rng.IntN(4)]
}

// policyAgrees: the switch decides on new connections as the evaluator does, for random rules
// and packets of both families, from containers, tunnels and uplinks.
func policyAgrees(t *testing.T, e evaluator) {
	sw := ovstest.Start(t)
	for mode, b := range policyBridges(t) {
		t.Run(mode, func(t *testing.T) {
			s := b.start(t, sw, mode)
			passes := tableGoto(b.p, b.p.first(stageReply))
			var rules []Rule
			verdicts := map[verdict]int{}
			for round := range 12 {
				rng := rand.New(rand.NewPCG(uint64(round), 11))
				before := rules
				rules = randomRules(rng, round*2)
				enforce(t, s, b, before, rules)
				for range 32 {
					p, packet := b.packet(rng, mode)
					trace := sw.Trace(mode, packet, "--ct-next", "trk,new")
					want := e.judged(rules, p)
					verdicts[want]++
					got := denied
					switch {
					case strings.Contains(trace, passes):
						got = allowed
					case strings.Contains(trace, "CONTROLLER"):
						got = rejected
					}
					if got != want {
						t.Fatalf("verdict %d, expected %d, by\n%+v\n%+v\n%s", got, want, rules, p, trace)
					}
					if tracked := strings.Contains(trace, "ct("); tracked != (len(rules) > 0) {
						t.Fatalf("tracked %t with %d rules:\n%s", tracked, len(rules), trace)
					}
				}
			}
			if verdicts[allowed] < 30 || verdicts[rejected] < 20 || verdicts[denied] < 20 {
				t.Errorf("allowed, rejected, denied %v: the test says little", verdicts)
			}
		})
	}
}

// Multicast listening bypasses the rules if it is sent to a group. If sent to one address
// it is subject to them.
func TestListenersTalkToGroups(t *testing.T) {
	sw := ovstest.Start(t)
	for mode, b := range policyBridges(t) {
		s := b.start(t, sw, mode)
		enforce(t, s, b, nil, []Rule{{ID: "none", Priority: 1, Deny: true}})
		from, to := b.endpoints[1], b.endpoints[2]
		for _, typ := range []uint8{icmpv6ListenerQuery, icmpv6ListenerReport1, icmpv6ListenerDone, icmpv6ListenerReport} {
			for _, dst := range []string{to.IPv6.String(), "fe80::99", "ff02::16"} {
				dstMAC := to.MAC
				if mode == "vrouter" {
					dstMAC = RouterMAC
				}
				trace := sw.Trace(mode, fmt.Sprintf("in_port=%d,icmp6,dl_src=%s,dl_dst=%s,ipv6_src=%s,ipv6_dst=%s,icmpv6_type=%d,nw_ttl=1",
					from.Port, from.MAC, dstMAC, from.IPv6, dst, typ), "--ct-next", "trk,new")
				routed := mode != "vrouter" || dst == to.IPv6.String()
				if passes := strings.Contains(trace, tableGoto(b.p, b.p.first(stageReply))); passes != (dst == "ff02::16" && routed && typ != icmpv6ListenerQuery) { // queries come from routers
					t.Errorf("%s: type %d to %s passes: %v\n%s", mode, typ, dst, passes, trace)
				}
			}
		}
	}
}

func tableGoto(p *Pipeline, table table) string { return fmt.Sprintf("goto_table:%d\n", p.to(table)) }

// The generation depends on the rules, not on their order or names.
func TestGeneration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rules := randomRules(rng, 50)
	var one, other RuleSet
	for _, r := range rules {
		one.Add(r)
	}
	for _, r := range slices.Backward(rules) {
		r.ID += "x"
		other.Add(r)
	}
	if one.Generation() != other.Generation() {
		t.Error("the order or the names of rules change their generation")
	}
	seen := map[uint32]bool{one.Generation(): true}
	extra := Rule{Priority: 1}
	for i := range 1000 {
		extra.DstPort = uint16(i)
		other.Add(extra)
		if g := other.Generation(); seen[g] || g == 0 || g >= 1<<31 {
			t.Fatalf("generation %d is none or was there before", g)
		} else {
			seen[g] = true
		}
	}
}

// A connection lasts as long as the rules allow it: its packets and replies pass, a rule
// that denies it ends it, and other rules do not affect it.
func TestPolicyAndConnections(t *testing.T) {
	sw := ovstest.Start(t)
	for mode, b := range policyBridges(t) {
		if mode == "vlan" {
			continue // its switch table learns, which does not work with packet-outs
		}
		t.Run(mode, func(t *testing.T) {
			s := b.start(t, sw, mode)
			w := b.wire(t, sw, mode, b.endpoints[1], b.endpoints[2]) // groups 1 and 2
			w.check("no rules", true, true)
			noAnswers := Rule{ID: "a", Priority: 1, SrcGroup: policyGroups[2], Deny: true}
			rules := []Rule{noAnswers}
			enforce(t, s, b, nil, rules)
			if w.answer() {
				t.Error("a denied connection is opened")
			}
			w.check("denied the other way only", true, true)
			other := []Rule{noAnswers, {ID: "b", Priority: 9, DstGroup: policyGroups[3], Deny: true}}
			enforce(t, s, b, rules, other)
			if !w.answer() {
				t.Error("an answer before the next question does not pass after other rules changed")
			}
			w.check("another rule", true, true)
			all := append(slices.Clone(other), Rule{ID: "c", Priority: 2, SrcGroup: policyGroups[1], DstGroup: policyGroups[2], Proto: 17, DstPort: 53, Deny: true})
			enforce(t, s, b, other, all)
			w.check("denied", false, false)
			w.check("still denied", false, false)
			enforce(t, s, b, all, other)
			w.check("allowed again", true, true)
			enforce(t, s, b, other, nil)
			w.check("no rules again", true, true)
		})
	}
}

// wire sends packets of endpoints into a bridge, from a client to a server and back.
type wire struct {
	t              *testing.T
	sw             *ovstest.Switch
	conn           *ofctrl.Conn
	p              *Pipeline
	client, server Endpoint
}

// wire prepares a started bridge, without any tracked connection: bridges share the
// connection table.
func (b *policyBridge) wire(t *testing.T, sw *ovstest.Switch, name string, client, server Endpoint) wire {
	t.Helper()
	conn, err := ofctrl.Dial(t.Context(), ofctrl.Config{Target: sw.Target(name)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	sw.Appctl("dpctl/flush-conntrack")
	return wire{t, sw, conn, b.p, client, server}
}

func (w wire) ask() bool { return w.passes(w.client, w.server, 1000, 53) }

func (w wire) answer() bool { return w.passes(w.server, w.client, 53, 1000) }

// check sends a request and a reply.
func (w wire) check(step string, wantAsk, wantAnswer bool) {
	w.t.Helper()
	if got := w.ask(); got != wantAsk {
		w.t.Errorf("%s: asking passes %t", step, got)
	}
	if got := w.answer(); got != wantAnswer {
		w.t.Errorf("%s: answering passes %t\n%s", step, got, w.sw.Appctl("dpctl/dump-conntrack", "-m"))
	}
}

// passes sends a UDP packet and reports whether policy has passed it.
func (w wire) passes(from, to Endpoint, srcPort, dstPort uint16) bool {
	w.t.Helper()
	before := passed(w.t, w.sw, w.conn, w.p)
	dst := to.MAC
	if w.p.set.Routing {
		dst = RouterMAC
	}
	err := w.conn.PacketOut(&of.PacketOut{
		InPort: from.Port, Buffer: of.NoBuffer, Data: udp(w.t, from, to, dst, srcPort, dstPort),
		Actions: of.NewActions().Output(of.PortTable),
	})
	if err == nil {
		err = w.conn.Barrier(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return passed(w.t, w.sw, w.conn, w.p) > before
}

// passed counts the packets that policy has passed.
func passed(t *testing.T, sw *ovstest.Switch, conn *ofctrl.Conn, p *Pipeline) uint64 {
	t.Helper()
	sw.Appctl("revalidator/purge") // updates the counters from the datapath
	var n uint64
	table := tableDeliver
	if p.first(stageOutput) == tableMAC {
		table = tableMAC
	}
	err := conn.DumpFlows(context.Background(), 0, 0, func(f of.FlowStats) error {
		if f.Table == p.to(table) && f.Priority > 0 {
			n += f.Packets
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// udp makes an empty UDP packet over IPv4 without UDP checksum (RFC 768).
func udp(t *testing.T, from, to Endpoint, dst MAC, srcPort, dstPort uint16) []byte {
	t.Helper()
	src4, dst4 := from.IPv4.As4(), to.IPv4.As4()
	ip := append([]byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0}, append(src4[:], dst4[:]...)...)
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(ip[i])<<8 | uint32(ip[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	ip[10], ip[11] = byte(^sum>>8), byte(^sum)
	frame, err := hex.DecodeString(strings.ReplaceAll(dst.String()+from.MAC.String(), ":", "") + "0800")
	if err != nil {
		t.Fatal(err)
	}
	frame = append(frame, ip...)
	return append(frame, byte(srcPort>>8), byte(srcPort), byte(dstPort>>8), byte(dstPort), 0, 8, 0, 0)
}
