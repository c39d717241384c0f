package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
)

func TestExpand(t *testing.T) {
	const group, number, remote = "t:web", 7, 9
	rule := func(change func(*contivmodel.Rule)) *contivmodel.Rule {
		r := &contivmodel.Rule{TenantName: "t", PolicyName: "p", RuleID: "1", Key: "t:p:1", Direction: "in", Action: "allow", Priority: 3}
		change(r)
		return r
	}
	id := func(name string) string { return "t:web:t:p:t:p:1:" + name }
	for name, tc := range map[string]struct {
		rule    *contivmodel.Rule
		remote  int
		network string
		want    []state.PolicyRule
	}{
		"in, any": {
			rule(func(*contivmodel.Rule) {}), 0, "",
			[]state.PolicyRule{{RuleID: id("inRx"), Priority: 3, DstEndpointGroup: number, Action: "allow"}},
		},
		"in, tcp port from group and address": {
			rule(func(r *contivmodel.Rule) {
				r.Protocol, r.Port, r.FromEndpointGroup, r.FromIPAddress = "tcp", 80, "app", "10.1.1.77/24"
			}),
			remote, "",
			[]state.PolicyRule{
				{
					RuleID: id("inRx"), Priority: 3, SrcEndpointGroup: remote, DstEndpointGroup: number, SrcIPAddr: "10.1.1.0/24",
					IPProtocol: 6, DstPort: 80, Action: "allow",
				},
				{
					RuleID: id("inTx"), Priority: 3, SrcEndpointGroup: number, DstEndpointGroup: remote, DstIPAddr: "10.1.1.0/24",
					IPProtocol: 6, SrcPort: 80, Action: "allow",
				},
			},
		},
		"in, one local address": {
			rule(func(r *contivmodel.Rule) { r.Protocol, r.Port, r.ToIPAddress = "udp", 53, "10.1.1.7" }), 0, "",
			[]state.PolicyRule{
				{RuleID: id("inRx"), Priority: 3, DstEndpointGroup: number, DstIPAddr: "10.1.1.7", IPProtocol: 17, DstPort: 53, Action: "allow"},
				{RuleID: id("inTx"), Priority: 3, SrcEndpointGroup: number, SrcIPAddr: "10.1.1.7", IPProtocol: 17, SrcPort: 53, Action: "allow"},
			},
		},
		"in, tcp without port is about opening connections": {
			rule(func(r *contivmodel.Rule) { r.Protocol, r.Action = "tcp", "deny" }), 0, "",
			[]state.PolicyRule{{RuleID: id("inRx"), Priority: 3, DstEndpointGroup: number, IPProtocol: 6, TCPFlags: "syn,!ack", Action: "deny"}},
		},
		"in, from a network": {
			rule(func(r *contivmodel.Rule) { r.Protocol, r.FromNetwork = "icmp", "n" }), 0, "10.2.0.0/16",
			[]state.PolicyRule{{RuleID: id("inRx"), Priority: 3, DstEndpointGroup: number, SrcIPAddr: "10.2.0.0/16", IPProtocol: 1, Action: "allow"}},
		},
		"out, port to a group": {
			rule(func(r *contivmodel.Rule) {
				r.Direction, r.Protocol, r.Port, r.ToEndpointGroup, r.ToIPAddress = "out", "17", 53, "app", "10.1.1.5/32"
			}),
			remote, "",
			[]state.PolicyRule{
				{
					RuleID: id("outTx"), Priority: 3, SrcEndpointGroup: number, DstEndpointGroup: remote, DstIPAddr: "10.1.1.5",
					IPProtocol: 17, DstPort: 53, Action: "allow",
				},
				{
					RuleID: id("outRx"), Priority: 3, SrcEndpointGroup: remote, DstEndpointGroup: number, SrcIPAddr: "10.1.1.5",
					IPProtocol: 17, SrcPort: 53, Action: "allow",
				},
			},
		},
		"out, tcp to a network": {
			rule(func(r *contivmodel.Rule) { r.Direction, r.Protocol, r.ToNetwork = "out", "tcp", "n" }), 0, "10.2.0.0/16",
			[]state.PolicyRule{{
				RuleID: id("outTx"), Priority: 3, SrcEndpointGroup: number, DstIPAddr: "10.2.0.0/16", IPProtocol: 6, TCPFlags: "syn,!ack", Action: "allow",
			}},
		},
		"in, from a network of both families": {
			rule(func(r *contivmodel.Rule) { r.Protocol, r.Port, r.FromNetwork, r.Action = "tcp", 80, "n", "reject" }), 0, "10.2.0.0/16 2001:db8::/64",
			[]state.PolicyRule{
				{RuleID: id("inRx"), Priority: 3, DstEndpointGroup: number, SrcIPAddr: "10.2.0.0/16", IPProtocol: 6, DstPort: 80, Action: "reject"},
				{RuleID: id("inTx"), Priority: 3, SrcEndpointGroup: number, DstIPAddr: "10.2.0.0/16", IPProtocol: 6, SrcPort: 80, Action: "reject"},
				{RuleID: id("inRx6"), Priority: 3, DstEndpointGroup: number, SrcIPAddr: "2001:db8::/64", IPProtocol: 6, DstPort: 80, Action: "reject"},
				{RuleID: id("inTx6"), Priority: 3, SrcEndpointGroup: number, DstIPAddr: "2001:db8::/64", IPProtocol: 6, SrcPort: 80, Action: "reject"},
			},
		},
		"in, from a network to one local address of the other family": {
			rule(func(r *contivmodel.Rule) { r.FromNetwork, r.ToIPAddress = "n", "10.1.1.7" }), 0, "10.2.0.0/16 2001:db8::/64",
			[]state.PolicyRule{{RuleID: id("inRx"), Priority: 3, DstEndpointGroup: number, SrcIPAddr: "10.2.0.0/16", DstIPAddr: "10.1.1.7", Action: "allow"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			four, six, _ := strings.Cut(tc.network, " ")
			got := Expand(Subject{Rule: tc.rule, Group: group, Number: number, Remote: tc.remote, Network: four, Network6: six})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// packet is what the reference model of a rule decides about.
type packet struct {
	src, dst         int // groups
	proto            int
	srcPort, dstPort int
}

// covers is the meaning of a record.
func covers(r state.PolicyRule, p packet) bool {
	match := func(want, got int) bool { return want == 0 || want == got }
	return match(r.SrcEndpointGroup, p.src) && match(r.DstEndpointGroup, p.dst) && match(r.IPProtocol, p.proto) &&
		match(r.SrcPort, p.srcPort) && match(r.DstPort, p.dstPort)
}

// TestMeaning holds the records of random rules to what the rules say about random
// packets: a request in the rule's direction is covered, and so is its answer if the
// rule names a port.
func TestMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &contivmodel.Rule{
			TenantName: "t", PolicyName: "p", RuleID: "1", Key: "t:p:1", Action: "allow", Priority: 1,
			Direction: rapid.SampledFrom([]string{"in", "out"}).Draw(t, "direction"),
			Protocol:  rapid.SampledFrom([]string{"", "tcp", "udp", "icmp"}).Draw(t, "protocol"),
			Port:      rapid.SampledFrom([]int{0, 80}).Draw(t, "port"),
		}
		remote := rapid.SampledFrom([]int{0, 2}).Draw(t, "remote")
		records := Expand(Subject{Rule: r, Group: "t:g", Number: 1, Remote: remote})
		proto, _ := contivmodel.ProtocolNumber(r.Protocol)
		p := packet{
			src: rapid.IntRange(1, 3).Draw(t, "src"), dst: rapid.IntRange(1, 3).Draw(t, "dst"),
			proto:   rapid.SampledFrom([]int{1, 6, 17}).Draw(t, "of"),
			srcPort: rapid.SampledFrom([]int{80, 4000}).Draw(t, "from"), dstPort: rapid.SampledFrom([]int{80, 4000}).Draw(t, "to"),
		}
		local, peer := p.dst, p.src
		if r.Direction == "out" {
			local, peer = p.src, p.dst
		}
		fits := func(local, peer, port int) bool {
			return local == 1 && (remote == 0 || peer == remote) && (proto == 0 || p.proto == proto) && (r.Port == 0 || port == r.Port)
		}
		want := fits(local, peer, p.dstPort)
		if (proto == 6 || proto == 17) && r.Port != 0 {
			want = want || fits(peer, local, p.srcPort)
		}
		got := false
		for _, rec := range records {
			got = got || covers(rec, p)
		}
		if got != want {
			t.Fatalf("%+v covers %+v: %v, want %v; records %+v", r, p, got, want, records)
		}
	})
}
