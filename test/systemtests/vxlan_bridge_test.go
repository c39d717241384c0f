package systemtests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

// TestVXLANBridge: a VXLAN network of a cluster that bridges is one Ethernet segment
// over all hosts.
func TestVXLANBridge(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, NetMode: "vlan", FwdMode: "bridge"})
	c.netctl("net", "create", "flat", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "flat", "--tenant", "blue", "--subnet=10.1.1.0/24", "--subnetv6=2001:db8:1::/100")

	a := c.attach("host1", "a", "flat")
	near := c.attach("host1", "near", "flat")
	b := c.attach("host2", "b", "flat")
	third := c.attach("host3", "third", "flat")
	c.attach("host1", "blue-a", "blue/flat")
	c.attach("host2", "blue-b", "blue/flat")

	for _, to := range []lab.Container{near, b, third} {
		c.reaches("a", to.IPv4)
		c.reaches("a", to.IPv6)
	}
	c.reaches("b", third.IPv4)
	c.transfer("a", near)
	c.transfer("a", b)
	withoutGateway(t, c.Lab, "vxlan")
	t.Run("every container is a neighbor", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, to := range []lab.Container{near, b, third} {
			if out := c.run("a", "ip neigh show "+to.IPv4+" dev eth0"); !containsMAC(out, to.MAC) {
				t.Errorf("a knows %s as %q, want its own MAC %s", to.IPv4, out, to.MAC)
			}
		}
	})
	t.Run("multicast reaches all", func(t *testing.T) {
		c := cluster{c.Lab, t}
		// Whoever hears a ping to all nodes answers it from its link-local address: the
		// four containers of the network, a itself included, and nobody else.
		c.eventually("four answers", func() error {
			out := c.run("a", "ping -6 -c 2 -i 0.5 -w 5 ff02::1%eth0 | grep -o 'from fe80::[^%]*' | sort -u")
			if n := len(strings.Fields(out)) / 2; n != 4 {
				return fmt.Errorf("%d answer:\n%s", n, out)
			}
			return nil
		})
	})
	t.Run("tenants are isolated", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.reachesNot("blue-a", third.IPv4)
		c.reachesNot("blue-a", third.IPv6)
	})
	t.Run("restart under traffic", func(t *testing.T) {
		c := cluster{c.Lab, t}
		flows := c.flows("host1", vxlanBridge)
		noneLost4, noneLost6 := c.watch("a", b.IPv4), c.watch("a", b.IPv6)
		for range 5 {
			c.restart("host1", "netplugin", syscall.SIGKILL)
		}
		noneLost4()
		noneLost6()
		if diff := cmp.Diff(flows, c.flows("host1", vxlanBridge)); diff != "" {
			t.Errorf("flows after the restarts (-before +after):\n%s", diff)
		}
	})
	t.Run("a switch that restarts floods again", func(t *testing.T) {
		c := cluster{c.Lab, t}
		groups := c.run("host1", "ovs-ofctl -O OpenFlow13 dump-groups "+vxlanBridge+" | grep group_id | sort")
		c.restart("host1", "ovs", syscall.SIGKILL)
		c.ready("host1", "netplugin")
		if after := c.run("host1", "ovs-ofctl -O OpenFlow13 dump-groups "+vxlanBridge+" | grep group_id | sort"); after != groups {
			t.Errorf("groups were\n%s\nand are\n%s", groups, after)
		}
		c.reaches("a", a.IPv4)
		c.reaches("b", a.IPv4)
		c.reaches("b", near.IPv6)
	})
}
