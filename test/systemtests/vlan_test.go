package systemtests

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestVLANBridge: a network is a VLAN on the trunk between the hosts.
func TestVLANBridge(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "bridge"})
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "100", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254", "--subnetv6=2001:db8:4::/100")
	c.netctl("net", "create", "lab", "--encap", "vlan", "--pkt-tag", "200", "--subnet=50.1.1.0/24", "--gateway=50.1.1.254")

	a := c.attach("host1", "a", "office")
	near := c.attach("host1", "near", "office")
	b := c.attach("host2", "b", "office")
	other := c.attach("host2", "other", "lab")
	c.attach("host1", "other-near", "lab")

	c.reaches("a", near.IPv4)
	c.reaches("a", b.IPv4)
	c.reaches("b", a.IPv6)
	c.reaches("other-near", other.IPv4)
	c.transfer("a", near)
	c.transfer("a", b)
	t.Run("networks are isolated", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.run("a", "ip route add 50.1.1.0/24 dev eth0")
		c.reachesNot("a", other.IPv4)
	})
	t.Run("the tag is on the wire", func(t *testing.T) {
		c := cluster{c.Lab, t}
		tagged := c.capture("host2", "eth2", "vlan 100 and icmp")
		c.reaches("a", b.IPv4)
		if got := tagged(); !strings.Contains(got, "vlan 100") {
			t.Errorf("no ping with tag 100 was seen on the trunk: %q", got)
		}
	})
	t.Run("the uplink carries what is in use", func(t *testing.T) {
		c := cluster{c.Lab, t}
		const trunks = "ovs-vsctl get port eth2 trunks"
		if got := strings.TrimSpace(c.run("host2", trunks)); got != "[100, 200]" {
			t.Errorf("the uplink of host2 carries %s, not the VLANs 100 and 200 of the networks", got)
		}
		noneLost4, noneLost6 := c.watch("a", b.IPv4), c.watch("a", b.IPv6)
		for range 5 {
			c.netctl("net", "create", "more", "--encap", "vlan", "--pkt-tag", "300", "--subnet=60.1.1.0/24", "--wait")
			c.becomes("host1", trunks+" | grep -Fx '[100, 200, 300]'")
			c.becomes("host2", trunks+" | grep -Fx '[100, 200, 300]'")
			c.netctl("net", "rm", "more")
			c.becomes("host1", trunks+" | grep -Fx '[100, 200]'")
			c.becomes("host2", trunks+" | grep -Fx '[100, 200]'")
		}
		noneLost4()
		noneLost6()
	})
	withoutGateway(t, c.Lab, "vlan")
	t.Run("an infra network", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.netctl("net", "create", "-n", "infra", "--encap", "vlan", "--pkt-tag", "400", "--subnet=132.1.1.0/24", "vmgmt", "--wait")
		var own [2]string
		for i, host := range []string{"host1", "host2"} {
			c.becomes(host, "ip -4 -br addr show vmgmt | grep -q 132.1.1.")
			own[i], _, _ = strings.Cut(strings.Fields(c.run(host, "ip -4 -br addr show vmgmt"))[2], "/")
		}
		tagged := c.capture("host2", "eth2", "vlan 400 and icmp")
		c.reaches("host1", own[1])
		if got := tagged(); !strings.Contains(got, "vlan 400") {
			t.Errorf("no ping with tag 400 was seen on the trunk: %q", got)
		}
		c.reaches("host2", own[0])
		noneLost := c.watch("host1", own[1])
		c.restart("host2", "netplugin", 9)
		noneLost()
		c.restart("host1", "ovs", 9)
		c.becomes("host1", "ip -br addr show vmgmt | grep -F "+own[0])
		c.becomes("host1", "ping -c 1 -W 1 "+own[1])
		c.netctl("net", "rm", "vmgmt")
		for _, host := range []string{"host1", "host2"} {
			c.becomes(host, "! ip -o link | grep vmgmt")
		}
	})
	t.Run("restart under traffic", func(t *testing.T) {
		c := cluster{c.Lab, t}
		noneLost := c.watch("a", b.IPv4)
		for range 3 {
			c.restart("host1", "netplugin", 9)
		}
		noneLost()
	})
}
