package systemtests

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

// TestModesChangeLive: a cluster changes how it forwards, answers ARP and numbers its
// hosts' private subnet while its agents run, and what the former mode needed is gone.
func TestModesChangeLive(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: "bridge"})
	bridges := []string{vlanBridge, vxlanBridge}
	flows := func() (all [][]string) {
		for _, host := range []string{"host1", "host2"} {
			for _, bridge := range bridges {
				all = append(all, c.flows(host, bridge))
			}
		}
		return all
	}
	same := func(what string, want [][]string) {
		t.Helper()
		c.eventually(what, func() error {
			if diff := cmp.Diff(want, flows()); diff != "" {
				return fmt.Errorf("flows (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	// live checks that containers of two networks, on two hosts, reach what they should.
	live := func(routed bool) {
		t.Helper()
		for i, encap := range []string{"vlan", "vxlan"} {
			c.netctl("net", "create", encap+"1", "--encap", encap, "--pkt-tag", fmt.Sprint(101+2*i), fmt.Sprintf("--subnet=10.%d.1.0/24", i+3), fmt.Sprintf("--gateway=10.%d.1.254", i+3))
			c.netctl("net", "create", encap+"2", "--encap", encap, "--pkt-tag", fmt.Sprint(102+2*i), fmt.Sprintf("--subnet=10.%d.2.0/24", i+3), fmt.Sprintf("--gateway=10.%d.2.254", i+3))
			c.attach("host1", "a", encap+"1")
			b := c.attach("host2", "b", encap+"1")
			other := c.attach("host2", "other", encap+"2")
			c.reaches("a", b.IPv4)
			if routed {
				c.reaches("a", other.IPv4)
			} else {
				c.reachesNot("a", other.IPv4)
			}
			for _, name := range []string{"a", "b", "other"} {
				if err := c.Detach(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			c.netctl("net", "rm", encap+"1")
			c.netctl("net", "rm", encap+"2")
		}
	}
	c.becomes("host1", "ovs-ofctl -O OpenFlow13 dump-flows "+vxlanBridge+" | grep tun_src="+c.Hosts()[1].VTEPIP())
	c.becomes("host2", "ovs-ofctl -O OpenFlow13 dump-flows "+vxlanBridge+" | grep tun_src="+c.Hosts()[0].VTEPIP())
	bridging := flows()
	live(false)
	same("nothing is left of the networks", bridging)

	c.netctl("global", "set", "--fwd-mode", "routing")
	c.eventually("hosts route", func() error {
		for i, f := range flows() {
			if cmp.Equal(f, bridging[i]) {
				return fmt.Errorf("bridge %s still bridges", bridges[i%2])
			}
		}
		return nil
	})
	live(true)
	c.netctl("global", "set", "--private-subnet", "172.21.0.0/16")
	c.netctl("global", "set", "--fwd-mode", "bridge")
	c.netctl("global", "set", "--private-subnet", "172.19.0.0/16")
	same("hosts bridge again", bridging)
	live(false)

	c.netctl("global", "set", "--arp-mode", "flood")
	c.eventually("ARP is flooded", func() error {
		if f := flows(); cmp.Equal(f[0], bridging[0]) || cmp.Equal(f[2], bridging[2]) {
			return fmt.Errorf("the flows are those of before")
		}
		return nil
	})
	live(false)
	c.netctl("global", "set", "--arp-mode", "proxy")
	same("ARP is answered again", bridging)
}
