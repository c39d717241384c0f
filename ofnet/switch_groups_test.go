package ofnet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

// flooding is a program of a meter, a group and a flow that uses both.
func flooding(id, rate uint32, ports ...uint32) Program {
	buckets := of.NewBuckets()
	for _, p := range ports {
		buckets = buckets.Add(of.NewActions().Output(p))
	}
	return Program{
		Meters: []of.Meter{{ID: id, Flags: of.MeterKbps | of.MeterBurst, Bands: of.NewBands().Drop(rate, 100)}},
		Groups: []of.Group{{ID: id, Type: of.GroupTypeAll, Buckets: buckets}},
		Flows: []of.Flow{{
			Priority: 1, Match: of.NewMatch().InPort(id),
			Instructions: of.NewInstructions().Meter(id).Apply(of.NewActions().Group(id)),
		}},
	}
}

func TestWhatAFlowRefersToComesBeforeAndGoesAfter(t *testing.T) {
	b := newFakeBridge()
	stale := flooding(3, 50, 1)
	b.tables.meters[3], b.tables.groups[3] = stale.Meters[0], stale.Groups[0]
	b.tables.flows[stale.Flows[0].Key()] = stale.Flows[0]
	s := runSwitch(t, b)
	check := func(step string, want ...string) {
		t.Helper()
		settle(t, s)
		b.mu.Lock()
		defer b.mu.Unlock()
		if diff := cmp.Diff(want, b.order); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
		b.order = nil
	}
	s.Set("a", flooding(1, 1000, 1, 2))
	if err := s.Settled(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	check("before everything is declared", "add meter", "add group", "add flow")
	s.InitialSyncDone()
	check("the sweep", "remove flow", "remove group", "remove meter")
	s.Set("a", flooding(1, 2000, 1, 2, 5))
	check("a change", "modify meter", "modify group")
	b.cut()
	s.Set("b", Program{})
	check("a reconnect")
	s.Set("a", flooding(2, 10, 1))
	check("another one", "add meter", "add group", "remove flow", "add flow", "remove group", "remove meter")
	s.Remove("a")
	check("the end", "remove flow", "remove group", "remove meter")
}

// Late flows are sent after all others, however many there are.
func TestLateFlowsAreSentLast(t *testing.T) {
	b := newFakeBridge()
	s := NewSwitch(SwitchConfig{Name: "br", Log: quiet(), Dial: b.dial})
	gate := flows(flow(0, 1, 1))
	gate.Late = true
	var many []of.Flow
	for i := range 2 * bundleSize {
		many = append(many, flow(1, 1, uint32(i+1)))
	}
	s.Set("gate", gate)
	s.Set("many", flows(many...))
	b.onAdd = func(f of.Flow, tables fakeTables) {
		if f.Table == 0 && len(tables.flows) != len(many) {
			t.Errorf("the late flow came after %d of %d others", len(tables.flows), len(many))
		}
	}
	startSwitch(t, s)
	s.InitialSyncDone()
	settle(t, s)
}

func TestRefusedGroupIsNamedAndBlocksOnlyItsOwner(t *testing.T) {
	b := newFakeBridge()
	s := runSwitch(t, b)
	bad := flooding(4, 10, 1)
	bad.Groups = nil // the flow's group is missing
	s.Set("bad", bad)
	s.Set("good", flooding(5, 10, 1))
	if err := s.Settled(t.Context(), "good"); err != nil {
		t.Fatal(err)
	}
	if err := s.Settled(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "bad group") {
		t.Errorf("settled with %v, expected the refusal", err)
	}
	if st := s.Status(); st.Refused != 1 || st.Groups != 1 || st.Meters != 2 {
		t.Errorf("status %+v", st)
	}
	s.Set("bad", flooding(4, 10, 1))
	s.InitialSyncDone()
	settle(t, s)
}

// A real switch reports groups and meters as they were sent, also after a restart, and
// loses those without owner.
func TestRealSwitchGroupsAndMeters(t *testing.T) {
	sw := ovstest.Start(t)
	sw.AddBridge("br")
	sw.Ofctl("add-group", "br", "group_id=77,type=all,bucket=actions=output:9")
	sw.Ofctl("add-meter", "br", "meter=77,kbps,band=type=drop,rate=5")
	run := func() (*Switch, func()) {
		s := NewSwitch(SwitchConfig{Name: "br", Target: sw.Target("br"), Log: quiet()})
		s.Set("a", flooding(1, 1000, 1, 2))
		s.Set("b", flooding(2, 20, 1))
		s.InitialSyncDone()
		stop := startSwitch(t, s)
		settle(t, s)
		return s, stop
	}
	first, stop := run()
	for _, dump := range []string{"dump-groups", "dump-meters"} {
		if out := sw.Ofctl(dump, "br"); strings.Contains(out, "77") {
			t.Errorf("a stale row stays:\n%s", out)
		}
	}
	if got := first.Status(); got.Sent != 8 || got.Groups != 2 || got.Meters != 2 {
		t.Errorf("status %+v, expected 6 additions and 2 removals", got)
	}
	stop()
	second, _ := run()
	if got := second.Status(); got.Sent != 0 {
		t.Errorf("%d changes sent to a bridge that had everything:\n%s\n%s", got.Sent, sw.Ofctl("dump-groups", "br"), sw.Ofctl("dump-meters", "br"))
	}
	second.Set("a", flooding(1, 3000, 2))
	settle(t, second)
	if out := sw.Ofctl("dump-groups", "br"); !strings.Contains(out, "group_id=1,type=all,bucket=actions=output:2") {
		t.Errorf("the group was not changed:\n%s", out)
	}
	if out := sw.Ofctl("dump-meters", "br"); !strings.Contains(out, "rate=3000") {
		t.Errorf("the meter was not changed:\n%s", out)
	}
	second.Remove("a")
	second.Remove("b")
	settle(t, second)
	if out := sw.Ofctl("dump-groups", "br") + sw.Ofctl("dump-meters", "br"); strings.Contains(out, "type=") {
		t.Errorf("left:\n%s", out)
	}
}
