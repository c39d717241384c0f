package commands

import (
	"strings"
	"testing"
)

// TestPolicyAudit: a policy's switch is set, exported, applied and taken back.
func TestPolicyAudit(t *testing.T) {
	at := netmaster(t)
	exports := func(want bool) {
		t.Helper()
		if text := netctl(t, at, "", "export"); strings.Contains(text, "audit: true\n") != want || strings.Contains(text, "audit: false") {
			t.Errorf("export, audit %v:\n%s", want, text)
		}
	}
	netctl(t, at, "", "policy", "create", "pay", "--audit")
	exports(true)
	netctl(t, at, "", "policy", "create", "pay", "--audit=false")
	exports(false)
	netctl(t, at, "kind: policy\npolicyName: pay\ntenantName: default\naudit: true\n", "apply", "-f", "-")
	exports(true)
}
