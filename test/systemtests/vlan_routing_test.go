package systemtests

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

const vlanBridge = "contivVlanBridge"

// TestVLANRouting: every host routes between the networks of a tenant; between hosts
// a packet has the VLAN of the network it goes to.
func TestVLANRouting(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "routing"})
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "101", "--subnet=10.3.1.0/24", "--gateway=10.3.1.254", "--subnetv6=2001:db8:3::/100", "--gatewayv6=2001:db8:3::fe")
	c.netctl("net", "create", "lab", "--encap", "vlan", "--pkt-tag", "102", "--subnet=10.3.2.0/24", "--gateway=10.3.2.254", "--subnetv6=2001:db8:4::/100", "--gatewayv6=2001:db8:4::fe")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "office", "--tenant", "blue", "--encap", "vlan", "--pkt-tag", "103", "--subnet=10.3.1.0/24", "--gateway=10.3.1.254")

	a := c.attach("host1", "a", "office")
	near := c.attach("host1", "near", "lab")
	b := c.attach("host2", "b", "office")
	far := c.attach("host2", "far", "lab")
	c.attach("host1", "blue-a", "blue/office")
	blue := c.attach("host2", "blue-b", "blue/office")
	c.attach("host2", "blue-c", "blue/office")

	for _, to := range []lab.Container{near, b, far} {
		c.reaches("a", to.IPv4)
		c.reaches("a", to.IPv6)
	}
	c.reaches("far", a.IPv4)
	c.reaches("a", "10.3.1.254")
	c.reaches("blue-a", blue.IPv4) // the address of b, too
	c.transfer("a", near)
	c.transfer("a", far)
	withoutGateway(t, c.Lab, "vlan")
	t.Run("tenants are isolated", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.reachesNot("blue-a", far.IPv4)
		c.reachesNot("a", "10.3.1.3") // blue-c's
	})
	t.Run("the tag on the wire is that of the destination", func(t *testing.T) {
		c := cluster{c.Lab, t}
		tagged := c.capture("host2", "eth2", "vlan 102 and icmp")
		c.reaches("a", far.IPv4)
		if got := tagged(); !strings.Contains(got, "vlan 102") {
			t.Errorf("no ping with tag 102 was seen on the trunk: %q", got)
		}
	})
	t.Run("restart under traffic", func(t *testing.T) {
		c := cluster{c.Lab, t}
		flows := c.flows("host1", vlanBridge)
		noneLost4, noneLost6 := c.watch("a", far.IPv4), c.watch("a", b.IPv6)
		for range 5 {
			c.restart("host1", "netplugin", syscall.SIGKILL)
		}
		noneLost4()
		noneLost6()
		if diff := cmp.Diff(flows, c.flows("host1", vlanBridge)); diff != "" {
			t.Errorf("flows after the restarts (-before +after):\n%s", diff)
		}
	})
}
