// Package monitoring checks the alert rules and the dashboard beside it.
package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	rules     = "contiv.rules.yaml"
	ruleTests = "contiv.rules.test.yaml"
	dashboard = "grafana-dashboard.json"
)

// TestRules: the rules are valid, and fire and do not fire as their tests say.
func TestRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", ruleTests}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v (it is in the package prometheus, see scripts/deps)\n%s", args, err, out)
		}
	}
}

// TestEveryRuleIsTested: the tests of the rules name each alert.
func TestEveryRuleIsTested(t *testing.T) {
	tests := read(t, ruleTests)
	alerts := regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(read(t, rules), -1)
	for _, a := range alerts {
		if !strings.Contains(tests, "alertname: "+a[1]) {
			t.Errorf("%s has no test for %s", ruleTests, a[1])
		}
	}
	if len(alerts) == 0 {
		t.Error("there are no alerts")
	}
}

// panel is what is read of a dashboard's panel.
type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// TestDashboard: each panel has expressions that Prometheus understands.
func TestDashboard(t *testing.T) {
	var d struct {
		Title  string  `json:"title"`
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil || d.Title == "" || len(d.Panels) == 0 {
		t.Fatalf("%+v: %v", d, err)
	}
	var asRules strings.Builder
	asRules.WriteString("groups:\n- name: panels\n  rules:\n")
	for _, p := range d.Panels {
		if p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("a panel has no title or shows nothing: %+v", p)
		}
		for _, target := range p.Targets {
			expr, err := json.Marshal(target.Expr)
			if err != nil {
				t.Fatal(err)
			}
			asRules.WriteString("  - record: panel\n    expr: " + string(expr) + "\n    labels: {panel: \"" + p.Title + "\", of: " + string(expr) + "}\n")
		}
	}
	file := t.TempDir() + "/panels.yaml"
	if err := os.WriteFile(file, []byte(asRules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestMetricsExist: docs/metrics.md has every metric that the rules, their tests and the
// dashboard name. TestMetrics holds that page to what the daemons export.
func TestMetricsExist(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(contiv_[a-z_]+)` \\| (\\w+) \\|").FindAllStringSubmatch(read(t, "../../docs/metrics.md"), -1) {
		listed[m[1]] = true
		if m[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				listed[m[1]+suffix] = true
			}
		}
	}
	for _, name := range []string{rules, ruleTests, dashboard} {
		used := regexp.MustCompile(`\bcontiv_[a-z_]+\b`).FindAllString(read(t, name), -1)
		if len(used) == 0 {
			t.Errorf("%s names no metric", name)
		}
		for _, metric := range used {
			if !listed[metric] {
				t.Errorf("%s names %s, which docs/metrics.md does not list", name, metric)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
