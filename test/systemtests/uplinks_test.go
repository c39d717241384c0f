package systemtests

import (
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// TestUplinksChange: a host gets a second uplink and goes back to one. What talks goes on
// talking, one of two may fail, and containers start under either.
func TestUplinksChange(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "bridge"})
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "100", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254", "--subnetv6=2001:db8:4::/100")
	a, b := c.attach("host1", "a", "office"), c.attach("host2", "b", "office")
	c.reaches("a", b.IPv4)
	host, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	if err := host.AddUplink(t.Context(), "eth3"); err != nil {
		t.Fatal(err)
	}
	alive := c.stream("a", b)
	for i, uplinks := range []string{"eth2,eth3", "eth2", "eth2,eth3", "eth3"} {
		if err := host.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := host.StartDaemon(t.Context(), "netplugin", "--vlan-uplinks", uplinks); err != nil {
			t.Fatal(err)
		}
		c.becomes("a", "ping -c 1 -W 1 "+b.IPv4)
		c.becomes("b", "ping -c 1 -W 1 "+a.IPv6)
		late := c.attach("host1", "late"+string(rune('0'+i)), "office")
		c.becomes("b", "ping -c 1 -W 1 "+late.IPv4)
		if uplinks != "eth2,eth3" {
			continue
		}
		for _, link := range []string{"eth2", "eth3"} {
			c.run("host1", "ip link set "+link+" down")
			c.becomes("b", "ping -c 1 -W 1 "+late.IPv4)
			c.becomes("a", "ping -c 1 -W 1 "+b.IPv6)
			c.run("host1", "ip link set "+link+" up")
			c.becomes("host1", "ovs-vsctl get interface "+link+" link_state | grep -x up")
			c.becomes("a", "ping -c 1 -W 1 "+b.IPv4)
		}
	}
	alive()
}
