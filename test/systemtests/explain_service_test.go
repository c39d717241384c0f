package systemtests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestExplainService: netctl explain says of each provider of a service whether it may be
// reached, as the switches then do; and of two tenants that they are isolated.
func TestExplainService(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "open")
	c.netctl("group", "create", "net", "closed", "--policy", "guard")
	c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=tcp", "--port=80", "--action=deny", "--wait")
	c.attach("host1", "app", "net")
	for group, host := range map[string]string{"open": "host1", "closed": "host2"} {
		provider := c.attachGroup(host, group, "net", group)
		c.listen(group, 80)
		c.connects("app", provider, 80, group == "open")
		c.event("start", provider, map[string]string{"app": "shop"})
	}
	c.netctl("service", "create", "shop", "--network", "net", "--selector", "app=shop", "--port", "8080:80:TCP")
	c.serviceWith("shop", 2)
	c.eventually("both providers are explained", func() error {
		text := c.netctl("explain", "app", "shop", "--port", "8080")
		lines := strings.Split(text, "\n")
		has := func(words ...string) bool {
			for _, line := range lines {
				if fields := strings.Fields(line); len(fields) > 3 && strings.Join(fields[len(fields)-len(words):], " ") == strings.Join(words, " ") {
					return true
				}
			}
			return false
		}
		if !has("host1", "allowed", "default") || !has("host2", "denied", "guard/1") || !strings.Contains(text, "Verdict:  denied") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	c.netctl("tenant", "create", "red")
	c.netctl("net", "create", "net", "-t", "red", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254")
	if _, err := c.Attach(t.Context(), lab.Attachment{Host: "host1", Name: "stranger", Tenant: "red", Network: "net"}); err != nil {
		t.Fatal(err)
	}
	if text, err := c.NetctlOutput(t.Context(), "explain", "app", "stranger", "--port", "80"); err == nil || !strings.Contains(text+err.Error(), "tenants are isolated") {
		t.Errorf("%s %v", text, err)
	}
}
