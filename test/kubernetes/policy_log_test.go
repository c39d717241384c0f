//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/state/flowapi"
)

// logged: the log, explain and preview name the NetworkPolicies that decide about pods.
func (p probed) logged() {
	p.apply(policy("x", "only-b", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}], ports: [{port: 80}]}]}"))
	ask := p.questions("x/a", "x/b", "x/c")
	p.check("the policy holds", ask, "deny * x/a\nallow x/b x/a tcp80")
	to := p.pods["x/a"].v4
	decided := func(from netip.Addr, verdict flowapi.Verdict, by flowapi.Decision) {
		p.eventually(fmt.Sprintf("a record of %s to %s is %s by %s", from, to, verdict, by.Policy), func() (bool, string) {
			p.observe(ask, time.Second) // again, as the switch hands over only so many denied packets at once
			text := p.netctl("flows", "--json", "--from", from.String(), "--to", to.String(), "--proto", "tcp", "--port", "80")
			for line := range strings.Lines(text) {
				var e flowapi.Event
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					p.t.Fatalf("%s: %v", line, err)
				}
				if r := e.Record; r != nil && r.Verdict == verdict && slices.ContainsFunc(r.Decisions, func(d flowapi.Decision) bool {
					return d.At != flowapi.AtSource && d.By == by.By && d.Policy == by.Policy && d.Rule == by.Rule && d.Verdict == verdict
				}) {
					return true, ""
				}
			}
			return false, text
		})
	}
	decided(p.pods["x/b"].v4, flowapi.Allowed, flowapi.Decision{By: flowapi.ByNetworkPolicy, Policy: "x/only-b", Rule: "ingress[0]"})
	decided(p.pods["x/c"].v4, flowapi.Denied, flowapi.Decision{By: flowapi.ByDefault, Policy: "x/only-b"})

	for from, want := range map[string]string{"x/b": "allowed", "x/c": "denied"} {
		text := p.netctl("explain", p.pods[from].v4.String(), to.String(), "--proto", "tcp", "--port", "80")
		if !strings.Contains(text, want) || !strings.Contains(text, "x/only-b") {
			p.t.Errorf("explain %s to x/a, expected %s by x/only-b:\n%s", from, want, text)
		}
	}
	// The policy as it would be: nobody but c.
	file := filepath.Join(p.t.TempDir(), "np.yaml")
	next := policy("x", "only-b", "{podSelector: {matchLabels: {pod: a}}, ingress: [{from: [{podSelector: {matchLabels: {pod: c}}}], ports: [{port: 80}]}]}")
	if err := os.WriteFile(file, []byte(next), 0o600); err != nil {
		p.t.Fatal(err)
	}
	text := p.netctl("k8s", "preview", "-f", file)
	if !strings.Contains(text, "this would have denied") || !strings.Contains(text, "would now allow") || !strings.Contains(text, "x/only-b") {
		p.t.Errorf("preview:\n%s", text)
	}
	p.check("a preview changes nothing", ask, "deny * x/a\nallow x/b x/a tcp80")
}
