package ofnet

import (
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// An agent that starts finds routes in the switch that it has not learned yet. They stay,
// and so do their next hops, until its neighbors have sent everything.
func TestRoutesOfThePredecessorStayUntilReleased(t *testing.T) {
	sw := ovstest.Start(t)
	sw.AddBridge("br")
	p := vlrouter(t)
	start := func() (*Switch, func()) {
		s := NewSwitch(SwitchConfig{Name: "br", Target: sw.Target("br"), Log: quiet()})
		s.Set("fixed", p.Program(Base{}))
		s.HoldStaleRoutes()
		s.InitialSyncDone()
		return s, startSwitch(t, s)
	}
	route := func(prefix string, hops HopSet) Program {
		return p.Program(Route{netip.MustParsePrefix(prefix), hops.ID})
	}
	count := func(s *Switch) [2]int {
		st := s.Status()
		return [2]int{st.Actual - len(p.Program(Base{}).Flows), st.Groups}
	}
	expect := func(s *Switch, what string, flows, groups int) {
		t.Helper()
		settle(t, s)
		if got := count(s); got != [2]int{flows, groups} {
			t.Errorf("%s: %v flows and groups beside the fixed ones, expected %d and %d", what, got, flows, groups)
		}
	}

	first, stop := start()
	first.Set("hops", p.Program(twoHops))
	first.Set("one", route("20.1.0.0/16", twoHops))
	first.Set("two", route("20.2.0.0/16", twoHops))
	first.Set("uplink", p.Program(uplink))
	expect(first, "the predecessor", 5, 1)
	stop()

	later, _ := start()
	expect(later, "a start", 3, 1) // those of the uplink are not routes
	later.Set("hops", p.Program(twoHops))
	later.Set("two", route("20.2.0.0/16", twoHops))
	expect(later, "half of it learned", 3, 1)
	later.Remove("two")
	expect(later, "what was learned is withdrawn", 2, 1)
	later.SweepStaleRoutes()
	expect(later, "all has been learned", 1, 1)
	later.Remove("hops")
	expect(later, "nothing is wanted", 0, 0)
}

// Earlier services stay with their groups until all are known, and those that are declared
// in the meantime follow their declarations.
func TestServicesOfThePredecessorStayUntilReleased(t *testing.T) {
	sw := ovstest.Start(t)
	sw.AddBridge("br")
	p := vrouter(t)
	start := func() (*Switch, func()) {
		s := NewSwitch(SwitchConfig{Name: "br", Target: sw.Target("br"), Log: quiet()})
		s.Set("fixed", p.Program(Base{}))
		s.HoldStaleServices()
		s.InitialSyncDone()
		return s, startSwitch(t, s)
	}
	one := func(vip string, number uint32) Program {
		return p.Program(Service{ID: vip, VRF: 1, Frontends: []Frontend{{
			Number: number, Proto: 6, Addr: netip.MustParseAddrPort(vip + ":80"),
			Providers: []Provider{{Addr: netip.MustParseAddrPort("10.1.0.1:8080")}},
		}}})
	}
	groups := func(s *Switch, what string, want int) {
		t.Helper()
		settle(t, s)
		if got := s.Status().Groups; got != want {
			t.Errorf("%s: %d groups, expected %d", what, got, want)
		}
	}
	first, stop := start()
	first.Set("a", one("10.96.0.1", 1))
	first.Set("b", one("10.96.0.2", 2))
	groups(first, "the predecessor", 2)
	before := first.Status().Actual
	stop()

	later, _ := start()
	groups(later, "a start", 2)
	if got := later.Status().Actual; got != before {
		t.Errorf("a start leaves %d of %d flows", got, before)
	}
	later.Set("b", one("10.96.0.2", 2))
	groups(later, "one is declared", 2)
	later.Remove("b")
	groups(later, "it is taken back", 1)
	later.SweepStaleServices()
	groups(later, "all are known", 0)
	if got, want := later.Status().Actual, len(p.Program(Base{}).Flows); got != want {
		t.Errorf("%d flows at the end, expected the %d fixed ones", got, want)
	}
}
