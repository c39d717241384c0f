//go:build vm

package systemtests

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestOffload: with other_config:hw-offload=true the switch gives what it can of its flows
// to the kernel's traffic control, which passes them on to a network adapter with hardware
// for them. Here is none, so traffic control itself does what they say: containers reach
// each other as before, rules hold, services lead to their providers, and nothing is lost
// when the agent restarts.
func TestOffload(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, Datapath: lab.DatapathKernel})
	for _, host := range []string{"host1", "host2"} {
		c.run(host, "ovs-vsctl set Open_vSwitch . other_config:hw-offload=true")
		c.restart(host, "ovs", syscall.SIGTERM) // which reads it when it starts
	}
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("policy", "create", "guard")
	c.netctl("group", "create", "net", "guarded", "--policy", "guard")
	client := c.attach("host1", "client", "net")
	near, far := c.attachGroup("host1", "near", "net", "guarded"), c.attachGroup("host2", "far", "net", "guarded")
	for _, p := range []lab.Container{near, far} {
		c.provide(p)
		c.listen(p.Name, 80, 81)
		c.event("start", p, map[string]string{"app": "web"})
	}
	c.netctl("service", "create", "web", "--network", "net", "--selector", "app=web", "--port", "80:8080:TCP", "--port", "53:8080:UDP")
	svc := c.serviceWith("web", 2)

	for _, to := range []lab.Container{near, far} {
		c.reaches("client", to.IPv4)
		c.reaches("client", to.IPv6)
		c.transfer("client", to)
	}
	for _, host := range []string{"host1", "host2"} {
		c.eventually("traffic control of "+host+" has flows", func() error {
			c.reaches("client", far.IPv4)
			if c.run(host, "ovs-appctl dpctl/dump-flows type=tc") == "" {
				return fmt.Errorf("the rest:\n%s", c.run(host, "ovs-appctl dpctl/dump-flows type=ovs"))
			}
			return nil
		})
	}
	c.netctl("policy", "rule-add", "guard", "1", "--direction=in", "--protocol=tcp", "--port=81", "--action=deny", "--wait")
	for _, to := range []lab.Container{near, far} {
		for range 3 {
			c.connects("client", to, 80, true)
			c.connects("client", to, 81, false)
		}
	}
	svc.each(func(network, address string) {
		for range 5 {
			c.eventually("an answer at "+network+" "+address, func() error {
				_, err := c.who(client, network, address)
				return err
			})
		}
	})
	alive4, alive6 := c.watch("client", far.IPv4), c.watch("client", near.IPv6)
	c.restart("host1", "netplugin", syscall.SIGKILL)
	alive4()
	alive6()
}
