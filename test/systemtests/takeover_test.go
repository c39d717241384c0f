package systemtests

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

// linkConfig prints what a host has by its interface, without what goes with time.
const linkConfig = `ip -o address show dev eth0 | sed 's/^[0-9]*: //' | grep -v 'scope link'
ip -4 route show table all | grep 'dev eth0' | grep -v 'table local' | sort
ip -6 route show table all | grep 'dev eth0' | grep -v -e fe80 -e 'table local' | sort
cat /sys/class/net/eth0/address /sys/class/net/eth0/flags /proc/sys/net/ipv6/conf/eth0/disable_ipv6`

// TestTakeover: hosts with one interface, for the control network and for VLANs, are
// reachable while netplugin has taken it over, and have it as it was after the cleanup.
func TestTakeover(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", Takeover: true})
	h, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		t.Helper()
		if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	start := func() {
		t.Helper()
		if err := h.StartDaemon(t.Context(), "netplugin"); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	c.run("host1", "netplugin cleanup")
	c.run("host1", `ip address add 192.168.2.110/24 dev eth0
ip address add 2001:db8:2::10/64 dev eth0 nodad
ip route add default via 192.168.2.11 metric 50
ip route add 203.0.113.0/24 via 192.168.2.11 table 77
ip -6 route add default via 2001:db8:2::11`)
	before := c.run("host1", linkConfig)

	// The agent of host1 is asked by the address that moves, while it moves.
	start()
	c.reaches("host2", "192.168.2.10")
	if out := c.run("host1", "ip -o address show dev eth0"); out != "" {
		t.Errorf("the uplink has addresses still:\n%s", out)
	}
	for _, want := range []string{"default via 192.168.2.11 dev contivUplink metric 50", "203.0.113.0/24 via 192.168.2.11 dev contivUplink table 77", "default via 2001:db8:2::11 dev contivUplink"} {
		if out := c.run("host1", "ip route show table all; ip -6 route show"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("there is no route %q:\n%s", want, out)
		}
	}
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "100", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254", "--subnetv6=2001:db8:4::/100")
	a, b := c.attach("host1", "a", "office"), c.attach("host2", "b", "office")
	c.reaches("a", b.IPv4)
	c.reaches("b", a.IPv6)
	c.serveHTTP("b")
	c.becomes("a", "nc -z -w 5 "+b.IPv4+" "+probePort) // checksums are right

	t.Run("nothing is answered twice", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if out := c.run("host2", "ping -c 5 -i 0.1 192.168.2.10"); strings.Contains(out, "DUP") {
			t.Errorf("the host hears by the uplink, too:\n%s", out)
		}
	})
	t.Run("restart of netplugin", func(t *testing.T) {
		c := cluster{c.Lab, t}
		host, container := c.watch("host2", "192.168.2.10"), c.watch("a", b.IPv4)
		for range 3 {
			c.restart("host1", "netplugin", syscall.SIGKILL)
		}
		host()
		container()
	})
	t.Run("restart of the switch", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.restart("host1", "ovs", syscall.SIGKILL)
		c.becomes("host2", "ping -c 1 -W 1 192.168.2.10")
		c.becomes("a", "ping -c 1 -W 1 "+b.IPv4)
	})
	t.Run("an agent that ended half-way", func(t *testing.T) {
		c := cluster{c.Lab, t}
		stop()
		// As if it had noted everything and moved one address.
		c.run("host1", `ip address del 192.168.2.110/24 dev contivUplink
ip address add 192.168.2.110/24 dev eth0
ip route del default via 192.168.2.11`)
		start()
		c.becomes("host1", "ip -o address show dev contivUplink | grep -q 192.168.2.110/24 && ip route | grep -q '^default via 192.168.2.11 dev contivUplink'")
		c.reaches("host2", "192.168.2.10")
	})
	t.Run("cleanup", func(t *testing.T) {
		c := cluster{c.Lab, t}
		stop()
		t.Log(c.run("host1", "netplugin cleanup"))
		c.eventually("the interface is as it was", func() error {
			if diff := cmp.Diff(before, c.run("host1", linkConfig)); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
		c.reaches("host2", "192.168.2.10")
	})
}
