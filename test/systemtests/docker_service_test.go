package systemtests

import (
	"fmt"
	"strings"

	"github.com/contiv/netplugin/test/lab"
)

// dockerServices: containers provide the services that select their labels, for as long
// as they run and are in the network.
func dockerServices(c dockers) {
	defer c.cleanUp()
	defer c.netctl("service", "rm", "shop")
	c.netctl("service", "create", "shop", "--network", "front", "--preferred-ip", "20.1.1.200", "--selector", "app=shop", "--port", "80:8080:TCP")
	provider := func(host, name string, args ...string) {
		all := append([]string{"run", "-d", "--name", name, "--network", "front"}, args...)
		c.docker(host, append(all, lab.Image, "sh", "-c", "echo "+name+" >/tmp/name; exec httpd -f -p 8080 -h /tmp")...)
	}
	provider("host1", "shop1", "--label", "app=shop")
	provider("host2", "shop2", "--label", "app=shop")
	provider("host2", "other", "--label", "app=bank")
	c.container("host1", "buyer", "front", "--dns", "192.168.2.1") // see dockersTalk
	answer := func() string {
		out, _ := c.try("host1", "exec", "buyer", "timeout", "10", "wget", "-q", "-O", "-", "http://20.1.1.200/name")
		return out
	}
	seen := map[string]bool{}
	c.eventually("both providers answer", func() bool {
		seen[answer()] = true
		return seen["shop1"] && seen["shop2"]
	})
	if seen["other"] {
		c.t.Error("a container answers whose labels the service does not select")
	}
	only := func(want string) {
		c.t.Helper()
		in := 0 // a row
		c.eventually(fmt.Sprintf("only %s answers", want), func() bool {
			if in++; answer() != want {
				in = 0
			}
			return in == 10
		})
	}
	c.docker("host1", "stop", "-t", "0", "shop1")
	only("shop2")
	c.docker("host1", "start", "shop1")
	c.docker("host2", "network", "disconnect", "front", "shop2")
	only("shop1")
	if out := c.docker("host1", "exec", "buyer", "ping", "-4", "-c", "1", "-w", "10", "shop"); !strings.Contains(out, "20.1.1.200") {
		c.t.Errorf("the name of the service is not its address:\n%s", out)
	}
}
