package dockplugin

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// TestWaitForOrphans: how long an endpoint without running container stays.
func TestWaitForOrphans(t *testing.T) {
	c := newCollector(&Server{})
	c.end("ended")
	noted := func(names ...string) func() (map[string]bool, error) {
		return func() (map[string]bool, error) {
			all := map[string]bool{}
			for _, name := range names {
				all[name] = true
			}
			return all, nil
		}
	}
	unknown := func() (map[string]bool, error) { return nil, errors.New("the Engine is down") }
	for _, tt := range []struct {
		name  string
		alone time.Duration
		noted func() (map[string]bool, error)
		want  time.Duration
	}{
		{"ended", 0, unknown, 0},
		{"just seen", 0, noted(), unnotedFor},
		{"just seen", unnotedFor - 1, noted("just seen"), 1},
		{"forgotten", unnotedFor, noted("other"), 0},
		{"about to start", unnotedFor, noted("other", "about to start"), DefaultGrace - unnotedFor},
		{"about to start", DefaultGrace, noted("about to start"), 0},
		{"who knows", unnotedFor, unknown, DefaultGrace - unnotedFor},
	} {
		if got := c.wait(tt.name, tt.alone, tt.noted); got != tt.want {
			t.Errorf("%s, alone for %s: stays for %s, want %s", tt.name, tt.alone, got, tt.want)
		}
	}
}

// TestEndsLater: an endpoint that the Engine deletes while the switch is down is removed
// when the switch is back, without another request.
func TestEndsLater(t *testing.T) {
	w := newWorld(t)
	w.network("net1", "10.1.1.0/24", "10.1.1.254")
	w.eventually("docker network", func() bool { return w.engine.named("net1") != nil })
	for _, name := range []string{"stays", "goes"} {
		if _, _, err := w.engine.run(name, "net1", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	w.endpoints(2)
	w.driver.FailDetach(errs.New(errs.Unavailable, "no switch"))
	if err := w.engine.remove("goes"); err != nil {
		t.Fatalf("removal while the switch is down: %v", err)
	}
	if names := w.keys(state.EndpointRoot); len(names) != 2 {
		t.Errorf("endpoints %v, want both: the port of one is still there", names)
	}
	w.driver.FailDetach(nil)
	w.endpoints(1)
	if eps := w.agent.LocalEndpoints(); slices.ContainsFunc(eps, func(e state.Endpoint) bool { return e.EPCommonName == "goes" }) {
		t.Errorf("left is %+v", eps)
	}
}
