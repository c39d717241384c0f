package ofnet

import (
	"testing"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/test/eventually"
)

// A bridge that comes back without its flows is counted. A broken connection after which
// they are still there is not, nor is the first connection.
func TestSwitchCountsRestarts(t *testing.T) {
	sw := ovstest.Start(t)
	s := realBridge(t, sw, "br", routedFlows(vrouter(t)))
	if st := s.Status(); st.Restarts != 0 || !st.RestartedAt.IsZero() {
		t.Fatalf("%d restarts at the start, at %v", st.Restarts, st.RestartedAt)
	}
	sw.Restart(9)
	eventually.True(t, "the restart is counted", func() bool { return s.Status().Restarts > 0 })
	settle(t, s)
	if s.Status().RestartedAt.IsZero() {
		t.Error("nobody knows when")
	}
}

// What is known of a bridge survives readings that are cut short.
func TestLosses(t *testing.T) {
	const ours = featureRoute << cookieFeatureShift
	var l losses
	read := func(known int, cookies ...uint64) bool {
		l.begin(known)
		for _, c := range cookies {
			l.saw(c)
		}
		return l.end(l.at)
	}
	for i, c := range []struct {
		known   int
		cookies []uint64
		cut     bool
		lost    bool
	}{
		{known: 0},                          // first connection to an empty bridge
		{known: 5, cookies: []uint64{ours}}, // connection broke, flows are there
		{known: 5, cut: true},               // broke again while reading
		{known: 0, lost: true},              // and now they are gone
		{known: 0},                          // nothing was there to lose
		{known: 3, cookies: []uint64{0}, lost: true}, // the switch's own flow is not ours
	} {
		if c.cut {
			l.begin(c.known)
			continue
		}
		if lost := read(c.known, c.cookies...); lost != c.lost {
			t.Errorf("reading %d: lost %v, want %v", i, lost, c.lost)
		}
	}
	if l.count != 2 {
		t.Errorf("%d losses, want 2", l.count)
	}
}
