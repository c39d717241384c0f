package systemtests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

func containsMAC(text, mac string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(mac))
}

// listen has a container accept TCP connections of both families.
func (c cluster) listen(name string, ports ...int) {
	c.t.Helper()
	for _, port := range ports {
		for _, family := range []string{"-4", "-6"} {
			cmd, err := c.Start(context.WithoutCancel(c.t.Context()), name, lab.Stdio{}, "nc", family, "-lk", fmt.Sprint(port))
			if err != nil {
				c.t.Fatal(err)
			}
			c.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		}
		c.run(name, fmt.Sprintf("for i in $(seq 200); do [ $(ss -Hltn 'sport = :%d' | wc -l) = 2 ] && exit 0; sleep 0.02; done; exit 1", port))
	}
}

// connects holds whether a TCP connection comes about, in both families.
func (c cluster) connects(from string, to lab.Container, port int, want bool) {
	c.t.Helper()
	patience := time.Second
	if want {
		patience = eventually.Scaled(patience)
	}
	for _, address := range []string{to.IPv4, to.IPv6} {
		_, err := c.Output(c.t.Context(), from, "nc", "-z", "-w", fmt.Sprint(max(1, int(patience.Seconds()))), address, fmt.Sprint(port))
		if (err == nil) != want {
			c.t.Errorf("%s to %s port %d: connected %t, want %t", from, address, port, err == nil, want)
		}
	}
}

func (c cluster) attachGroup(host, name, network, group string) lab.Container {
	c.t.Helper()
	container, err := c.Attach(c.t.Context(), lab.Attachment{Host: host, Name: name, Network: network, Group: group})
	if err != nil {
		c.t.Fatal(err)
	}
	return container
}

// TestPolicy: rules of groups hold on the same host and across hosts, in both
// families, for new connections and for those that exist already.
func TestPolicy(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "web", "--policy", "guard")
	c.netctl("group", "create", "net", "app")
	c.netctl("group", "create", "net", "other")

	web := c.attachGroup("host1", "web", "net", "web")
	web2 := c.attachGroup("host2", "web2", "net", "web")
	app := c.attachGroup("host1", "app", "net", "app")
	c.attachGroup("host2", "app2", "net", "app")
	c.attachGroup("host2", "other", "net", "other")
	clients := []string{"app", "app2", "other"}
	c.listen("web", 80, 81)
	c.listen("web2", 80)
	c.listen("app", 80)
	rule := func(c cluster, args ...string) {
		c.t.Helper()
		c.netctl(append([]string{"policy", "rule-add", "guard"}, args...)...)
	}
	// everywhere repeats a probe until all hosts have the change.
	soon := func(c cluster, from string, to lab.Container, port int, want bool) {
		c.t.Helper()
		c.eventually(fmt.Sprintf("connected %t from %s to %s port %d", want, from, to.Name, port), func() error {
			_, err := c.Output(c.t.Context(), from, "nc", "-z", "-w", "1", to.IPv4, fmt.Sprint(port))
			if (err == nil) != want {
				return fmt.Errorf("connected %t", err == nil)
			}
			return nil
		})
	}

	t.Run("without rules everything passes", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, from := range clients {
			c.connects(from, web, 80, true)
			c.reaches(from, web.IPv4)
			c.reaches(from, web.IPv6)
		}
	})
	t.Run("deny all TCP, allow a port", func(t *testing.T) {
		c := cluster{c.Lab, t}
		rule(c, "1", "--direction=in", "--protocol=tcp", "--action=deny")
		rule(c, "2", "--direction=in", "--protocol=tcp", "--port=80", "--action=allow", "--priority=10")
		for _, from := range clients {
			soon(c, from, web, 81, false)
		}
		for _, from := range clients {
			c.connects(from, web, 80, true)
			c.connects(from, web, 81, false)
			c.reaches(from, web.IPv4) // other protocols are not matched
		}
		c.connects("other", web2, 80, true)
		c.connects("web", app, 80, true) // what web starts itself is not matched either
	})
	t.Run("from a group", func(t *testing.T) {
		c := cluster{c.Lab, t}
		rule(c, "3", "--direction=in", "--protocol=tcp", "--port=80", "--from-group=app", "--action=deny", "--priority=20")
		soon(c, "app", web, 80, false)
		soon(c, "app2", web, 80, false)
		c.connects("app", web, 80, false)
		c.connects("app2", web, 80, false)
		c.connects("other", web, 80, true)
		c.netctl("policy", "rule-rm", "guard", "3")
		soon(c, "app", web, 80, true)
		soon(c, "app2", web, 80, true)
	})
	t.Run("a new deny ends what it covers", func(t *testing.T) {
		c := cluster{c.Lab, t}
		var out buffer
		cmd, err := c.Start(context.WithoutCancel(t.Context()), "other", lab.Stdio{Out: &out}, "ping", "-n", "-i", "0.1", web.IPv4)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		answers := func() int { return strings.Count(out.String(), "bytes from") }
		c.eventually("answers", func() error {
			if answers() < 5 {
				return fmt.Errorf("%d", answers())
			}
			return nil
		})
		rule(c, "4", "--direction=in", "--protocol=icmp", "--action=deny")
		c.eventually("silence", func() error {
			before := answers()
			time.Sleep(500 * time.Millisecond)
			if more := answers() - before; more > 0 {
				return fmt.Errorf("%d more answers", more)
			}
			return nil
		})
		c.connects("other", web, 80, true)
		c.netctl("policy", "rule-rm", "guard", "4")
		c.eventually("answers again", func() error {
			before := answers()
			time.Sleep(500 * time.Millisecond)
			if answers() == before {
				return fmt.Errorf("none")
			}
			return nil
		})
	})
	t.Run("restart under traffic", func(t *testing.T) {
		c := cluster{c.Lab, t}
		noneGone, noneLost, alive := c.watchFlows("host1"), c.watch("other", web.IPv4), c.stream("web", app)
		for range 3 {
			c.restart("host1", "netplugin", 9)
		}
		noneGone()
		noneLost()
		alive()
		c.connects("other", web, 81, false)
		c.connects("other", web, 80, true)
	})
	t.Run("what is used stays", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if out, err := c.NetctlOutput(t.Context(), "policy", "rm", "guard"); err == nil {
			t.Errorf("a policy that a group uses was removed: %s", out)
		}
	})
}
