package ofnet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// large is a host's view of a cluster: groups of endpoints, nearly all on other hosts, and
// rules between groups.
func large(p *Pipeline, groups, endpoints, rules int) (programs map[string]Program, vrf func(int) Program) {
	programs = map[string]Program{"fixed": p.Program(Base{}), "net": p.Program(vxNet1)}
	for g := range groups {
		for i := range endpoints {
			e := endpointOf(vxNet1, fmt.Sprintf("e%d-%d", g, i), fmt.Sprintf("10.%d.%d.%d", 2+g/256, g%256, i+1), "", 0, fmt.Sprintf("192.168.60.%d", 1+i%100))
			e.Group, e.Policed = uint32(g+1), true
			programs["ep/"+e.ID] = p.Program(e)
		}
	}
	var set RuleSet
	for g := range groups {
		for i := range rules {
			r := Rule{ID: fmt.Sprintf("r%d-%d", g, i), Priority: uint8(1 + i), SrcGroup: uint32(1 + (g+i)%groups), DstGroup: uint32(g + 1), Proto: 6, DstPort: uint16(8000 + i)}
			set.Add(r)
			programs["rule/"+r.ID] = p.Program(r)
		}
	}
	return programs, func(more int) Program {
		return p.Program(VRFPolicy{VRF: vxNet1.VRF, Generation: set.Generation() + uint32(2*more)})
	}
}

// The number of flows grows with endpoints plus rules, not with pairs of endpoints.
func TestFlowsGrowWithEndpointsPlusRules(t *testing.T) {
	programs, _ := large(vrouter(t), 100, 100, 20)
	flows := 0
	for _, p := range programs {
		flows += len(p.Flows)
	}
	if flows > 40_000 {
		t.Errorf("%d flows for 100 groups of 100 endpoints and 20 rules each, expected at most 40,000", flows)
	}
}

// BenchmarkRuleChange is the time from a rule's declaration until the switch has it, among
// 50,000 flows.
func BenchmarkRuleChange(b *testing.B) {
	sw := ovstest.Start(b)
	p := vrouter(b)
	sw.AddBridge("br")
	s := NewSwitch(SwitchConfig{Name: "br", Target: sw.Target("br"), Log: quiet()})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	defer func() { cancel(); <-done }()
	programs, vrf := large(p, 140, 100, 20)
	begin := time.Now()
	for owner, program := range programs {
		s.Set(owner, program)
	}
	s.Set("vrf", vrf(0))
	s.InitialSyncDone()
	for s.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	all := time.Since(begin).Seconds()
	i := 0
	for b.Loop() {
		i++
		s.Set("rule/new", p.Program(Rule{ID: "new", Priority: 90, SrcGroup: 1, DstGroup: 2, Proto: 6, DstPort: uint16(i%60000 + 1), Deny: true}))
		s.Set("vrf", vrf(i))
		for _, owner := range []string{"rule/new", "vrf"} {
			if err := s.Settled(ctx, owner); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(s.Status().Actual), "flows")
	b.ReportMetric(all, "s/all")
}

// BenchmarkResync is the time from an agent's start until it knows that a bridge with
// 50,000 flows has all of them.
func BenchmarkResync(b *testing.B) {
	sw := ovstest.Start(b)
	p := vrouter(b)
	sw.AddBridge("br")
	programs, vrf := large(p, 140, 100, 20)
	programs["vrf"] = vrf(0)
	run := func() (s *Switch, stop func()) {
		s = NewSwitch(SwitchConfig{Name: "br", Target: sw.Target("br"), Log: quiet()})
		for owner, program := range programs {
			s.Set(owner, program)
		}
		s.InitialSyncDone()
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }()
		if err := s.Flushed(ctx); err != nil {
			b.Fatal(err)
		}
		return s, func() { cancel(); <-done }
	}
	s, stop := run()
	flows := s.Status().Actual
	stop()
	for b.Loop() {
		s, stop := run()
		if sent := s.Status().Sent; sent != 0 {
			b.Fatalf("%d changes are sent to a bridge that has everything", sent)
		}
		stop()
	}
	b.ReportMetric(float64(flows), "flows")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/resync")
}
