package main

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/state/rights"
	"github.com/contiv/netplugin/utils/cliconf"
)

// TestStoreGrant: the command says what it does and does it once; an embedded store needs none.
func TestStoreGrant(t *testing.T) {
	cfg := embedded.Config{Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true}
	server, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	grant := func(args ...string) string {
		t.Helper()
		status, out, stderr := execute(t.Context(), append([]string{"--etcd-endpoints", "http://" + cfg.ListenClient, "store", "grant"}, args...)...)
		if status != 0 {
			t.Fatalf("status %d, %s", status, stderr)
		}
		return out
	}
	plan := grant("--dry-run")
	for _, prefix := range rights.AgentReads() {
		if !strings.Contains(plan, "let role contiv-agent read "+prefix+"\n") {
			t.Errorf("%s is not in the plan:\n%s", prefix, plan)
		}
	}
	if done := grant(); done != plan {
		t.Errorf("done:\n%s\nplanned:\n%s", done, plan)
	}
	if again := grant(); !strings.HasPrefix(again, "nothing to do") {
		t.Errorf("again:\n%s", again)
	}
	if status, _, stderr := execute(t.Context(), "--store", "embedded", "store", "grant"); status != cliconf.ExitUsage || !strings.Contains(stderr, "needs no grant") {
		t.Errorf("embedded: status %d, %s", status, stderr)
	}
}
