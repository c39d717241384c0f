package systemtests

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

const vxlanBridge = "contivVxlanBridge"

// TestVXLANRouting is what the system is for: containers of a tenant talk across hosts
// and networks, those of different tenants do not, whatever is restarted meanwhile.
func TestVXLANRouting(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("net", "create", "back", "--subnet=30.1.1.0/24", "--gateway=30.1.1.254", "--subnetv6=2001:db8:2::/100")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "front", "--tenant", "blue", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("net", "create", "front2", "--tenant", "blue", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254")

	web := c.attach("host1", "web", "front")
	near := c.attach("host1", "near", "front")
	db := c.attach("host2", "db", "front")
	store := c.attach("host2", "store", "back")
	blueWeb := c.attach("host1", "blue-web", "blue/front")
	blueDB := c.attach("host2", "blue-db", "blue/front")
	blueFar := c.attach("host2", "blue-far", "blue/front2")

	for _, family := range []struct {
		name    string
		address func(lab.Container) string
	}{
		{"IPv4", func(c lab.Container) string { return c.IPv4 }},
		{"IPv6", func(c lab.Container) string { return c.IPv6 }},
	} {
		t.Run(family.name, func(t *testing.T) {
			c := cluster{c.Lab, t}
			for _, pair := range [][2]lab.Container{
				{web, near},
				{web, db},
				{db, web},
				{web, store},
				{store, near},
				{blueWeb, blueDB},
			} {
				c.reaches(pair[0].Name, family.address(pair[1]))
			}
		})
	}
	withoutGateway(t, c.Lab, "vxlan")
	t.Run("routed between networks of a second tenant", func(t *testing.T) { cluster{c.Lab, t}.reaches("blue-web", blueFar.IPv4) })
	t.Run("TTL is decremented by routing only", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if out := c.run("web", "ping -c 1 -w 5 "+db.IPv4); !strings.Contains(out, "ttl=64") {
			t.Errorf("ping within a network: %s, want ttl=64", out)
		}
		if out := c.run("web", "ping -c 1 -w 5 "+store.IPv4); !strings.Contains(out, "ttl=63") {
			t.Errorf("ping between networks: %s, want ttl=63", out)
		}
	})
	t.Run("TCP and UDP", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.transfer("web", near)
		c.transfer("web", db)
		c.transfer("web", store)
	})
	t.Run("MTU", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if got := c.run("web", "cat /sys/class/net/eth0/mtu"); got != "1450" {
			t.Errorf("MTU of eth0 = %s, want 1450: 1500 less VXLAN over IPv4", got)
		}
		c.run("web", "ping -c 2 -i 0.1 -w 5 -M do -s 1422 "+db.IPv4)
		full := c.capture("host1", "eth1", "udp port 4789 and greater 1514")
		fragment := c.capture("host1", "eth1", "ip[6:2] & 0x3fff != 0")
		c.transfer("web", db)
		if full() == "" {
			t.Error("a TCP transfer did not fill the packets: none of 1500 bytes was seen on the wire")
		}
		if got := fragment(); got != "" {
			t.Errorf("a fragment was seen on the wire: %s", got)
		}
	})
	t.Run("tenants are isolated", func(t *testing.T) {
		c := cluster{c.Lab, t}
		// The first tenant has more addresses in use than the second: those are nobody's there.
		extra := c.attach("host2", "extra", "front")
		c.reaches("web", extra.IPv4)
		c.reachesNot("blue-web", extra.IPv4)
		c.reachesNot("blue-web", extra.IPv6)
		c.reachesNot("blue-web", store.IPv4)
		c.reachesNot("web", blueFar.IPv4)
	})
	t.Run("restart", func(t *testing.T) { cluster{c.Lab, t}.restarts(web, db) })
	t.Run("detach", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if err := c.Detach(t.Context(), "near"); err != nil {
			t.Fatal(err)
		}
		c.reachesNot("web", near.IPv4)
		again := c.attach("host2", "near", "front")
		if again.IPv4 != near.IPv4 {
			t.Errorf("a new container has %s, want %s, the lowest free one", again.IPv4, near.IPv4)
		}
		c.reaches("web", again.IPv4)
	})
}

// restarts kills the daemons under traffic: not a packet may be lost.
func (c cluster) restarts(from, to lab.Container) {
	for _, daemon := range []string{"netplugin", "netmaster"} {
		c.t.Run(daemon, func(t *testing.T) {
			c := cluster{c.Lab, t}
			c.reaches(from.Name, to.IPv4)
			flows, ports := c.flows("host1", vxlanBridge), c.ports("host1")
			noneLost4, noneLost6, alive := c.watch(from.Name, to.IPv4), c.watch(from.Name, to.IPv6), c.stream(from.Name, to)
			for range restartRounds() {
				c.restart("host1", daemon, syscall.SIGKILL)
			}
			noneLost4()
			noneLost6()
			alive()
			if diff := cmp.Diff(flows, c.flows("host1", vxlanBridge)); diff != "" {
				t.Errorf("flows after the restarts (-before +after):\n%s", diff)
			}
			after := c.ports("host1")
			for _, port := range ports {
				if !slices.Contains(after, port) {
					t.Errorf("port %s is not what it was after the restarts:\n%s", port, strings.Join(after, "\n"))
				}
			}
		})
	}
	c.t.Run("OpenFlow channel", func(t *testing.T) {
		c := cluster{c.Lab, t}
		flows := c.flows("host1", vxlanBridge)
		id := c.run("host1", "ovs-vsctl get bridge "+vxlanBridge+" datapath_id")
		noneLost := c.watch(from.Name, to.IPv4)
		for n := range restartRounds() {
			// A switch whose datapath id changes drops every OpenFlow connection.
			c.run("host1", fmt.Sprintf("ovs-vsctl set bridge %s other_config:datapath-id=%016x", vxlanBridge, 0xc0117100+n))
			time.Sleep(50 * time.Millisecond)
		}
		c.run("host1", fmt.Sprintf("ovs-vsctl set bridge %s other_config:datapath-id=%s", vxlanBridge, strings.Trim(id, `"`)))
		noneLost()
		c.ready("host1", "netplugin")
		if diff := cmp.Diff(flows, c.flows("host1", vxlanBridge)); diff != "" {
			t.Errorf("flows after the connections (-before +after):\n%s", diff)
		}
	})
	c.t.Run("ovs", func(t *testing.T) {
		c := cluster{c.Lab, t}
		flows := c.flows("host1", vxlanBridge)
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			c.restart("host1", "ovs", signal)
			// From here on it is up, and the traffic must be back within two seconds.
			c.run(from.Name, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do ping -c 1 -W 0.1 "+to.IPv4+" >/dev/null && exit 0; done; exit 1")
		}
		c.reaches(from.Name, to.IPv4)
		c.reaches(from.Name, to.IPv6)
		if diff := cmp.Diff(flows, c.flows("host1", vxlanBridge)); diff != "" {
			t.Errorf("flows after the restarts (-before +after):\n%s", diff)
		}
	})
}
