package systemtests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestAuditMode: a policy in audit mode decides nothing, also where no other rule has
// connections tracked; the log says what it would have decided, until it is enforced.
func TestAuditMode(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("policy", "create", "next", "--mode=audit")
	c.netctl("group", "create", "net", "web", "--policy", "next")
	c.netctl("policy", "rule-add", "next", "1", "--direction=in", "--protocol=tcp", "--port=81", "--action=deny", "--wait")
	web := c.attachGroup("host2", "web", "net", "web")
	c.attach("host1", "app", "net")
	c.listen("web", 80, 81)
	c.connects("app", web, 80, true)
	c.connects("app", web, 81, true)
	c.eventually("the log says what would have been denied", func() error {
		text := c.netctl("flows", "--to", "web")
		if strings.Count(text, "audit: would be denied by next/1") < 2 { // both families
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	c.eventually("what would have decided is counted", func() error {
		if text := c.netctl("policy", "hits"); !strings.Contains(text, "next/1") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	c.netctl("policy", "create", "next", "--mode=enforce", "--wait")
	c.connects("app", web, 80, true)
	c.connects("app", web, 81, false)
	c.netctl("policy", "create", "next", "--mode=audit", "--wait")
	c.connects("app", web, 81, true)
}
