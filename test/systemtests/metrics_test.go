package systemtests

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

// metrics reads what a daemon of a host exports of itself, by name with labels.
func (c cluster) metrics(host, port string) string {
	c.t.Helper()
	return c.run(host, "curl -sS --max-time 30 http://localhost:"+port+"/metrics")
}

// TestMetrics: the daemons export what docs/metrics.md lists, and nothing else.
func TestMetrics(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "web", "--policy", "guard")
	c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=tcp", "--action=deny", "--wait")
	web := c.attachGroup("host1", "web", "net", "web")
	c.attach("host1", "client", "net")
	c.connects("client", lab.Container{IPv4: web.IPv4, IPv6: web.IPv4}, 80, false)
	c.reachesNot("client", "10.1.1.77")

	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(contiv_[a-z_]+)` \\|").FindAllSubmatch(page, -1) {
		// Kubernetes has its own DNS; there is an audit log with TLS only (TestSecured).
		if name := string(m[1]); !strings.HasPrefix(name, "contiv_dns_") && !strings.HasPrefix(name, "contiv_netmaster_audit_") {
			listed = append(listed, name)
		}
	}
	agent, master := c.metrics("host1", "9090"), c.metrics("host1", "9999")
	var exported []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (contiv_[a-z_]+) `).FindAllStringSubmatch(agent+master, -1) {
		exported = append(exported, m[1])
	}
	slices.Sort(listed)
	slices.Sort(exported)
	if diff := cmp.Diff(listed, exported); diff != "" {
		t.Errorf("docs/metrics.md (-) and what is exported (+):\n%s", diff)
	}
	for _, want := range []string{
		`contiv_policy_rule_packets_total\{rule="[^"]+"\} [1-9]`,
		`contiv_ovs_dropped_packets_total\{bridge="contivVxlanBridge",reason="deny"\} [1-9]`,
		`contiv_ovs_dropped_packets_total\{bridge="contivVxlanBridge",reason="arp"\} [1-9]`,
		`contiv_ovs_endpoints\{where="local"\} 2`,
		`contiv_agent_objects\{kind="rule"\} 1`,
	} {
		if !regexp.MustCompile("(?m)^" + want).MatchString(agent) {
			t.Errorf("netplugin does not export %s", want)
		}
	}
	if !strings.Contains(master, `contiv_netmaster_route_seconds_count{method="POST",route="/api/v1/networks/{key}"} 1`) {
		t.Error("netmaster does not count requests by route")
	}
}
