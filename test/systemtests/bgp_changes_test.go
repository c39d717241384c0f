package systemtests

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// loopback4 is a router's own address, on no link.
const loopback4 = "80.1.1.1"

// bgpChanges are the events of a network's life around hosts whose speakers talk to both
// routers, a being a container of host1.
func bgpChanges(t *testing.T, l *lab.Lab, a lab.Container) {
	within := func(name string, f func(c cluster)) { t.Run(name, func(t *testing.T) { f(cluster{l, t}) }) }

	within("a router's loopback address comes, goes and comes again", func(c cluster) {
		c.run("router1", "ip address add "+loopback4+"/32 dev lo")
		for range 2 {
			c.frrNetwork("router1", "network "+loopback4+"/32")
			c.routed("a", loopback4)
			c.frrNetwork("router1", "no network "+loopback4+"/32")
			c.learned("host1", loopback4+"/32", false)
			c.reachesNot("a", loopback4)
		}
	})
	within("one peer, then the other, then both", func(c cluster) {
		for n := 1; n <= 2; n++ {
			c.netctl("bgp", "create", "host1", "--router-ip", lab.HostRouterIP(1), "--router-ip6", lab.HostRouterIP6(1),
				"--as", fmt.Sprint(lab.HostsAS), "--neighbor", lab.RouterIP(n), "--neighbor-as", fmt.Sprint(lab.RoutersAS), "--password", bgpPassword)
			c.established("host1", 1)
			c.learned("host1", fmt.Sprintf("60.1.%d.0/24", n), true)
			c.learned("host1", fmt.Sprintf("60.1.%d.0/24", 3-n), false)
			c.routed("a", lab.OutsideIP(n))
			c.routed(lab.OutsideName(n), a.IPv4)
			c.reachesNot("a", lab.OutsideIP(3-n))
		}
		c.speaker(1, bgpPassword)
		c.established("host1", 2)
		c.routed("a", lab.OutsideIP(1))
		c.routed("a", lab.OutsideIP(2))
	})
	within("netmaster is killed and comes back", func(c cluster) {
		noneLost := c.watch(lab.OutsideName(1), a.IPv4)
		c.restart("host1", "netmaster", syscall.SIGKILL)
		c.ready("host1", "netmaster")
		c.established("host1", 2)
		noneLost()
		late := c.attach("host1", "after", "office")
		c.routed(lab.OutsideName(2), late.IPv4)
		if err := c.Detach(t.Context(), "after"); err != nil {
			c.t.Fatal(err)
		}
	})
	within("the uplink goes down and comes back, a container started in between", func(c cluster) {
		c.run("host1", "ip link set eth2 down")
		c.established("host1", 0)
		c.learned("host1", "60.1.1.0/24", false)
		late := c.attach("host1", "between", "office")
		c.run("host1", "ip link set eth2 up")
		// A router may hold on to half a session until its hold time is over: it ignores
		// the unsigned reset that tells it (RFC 2385 section 4.2).
		c.established("host1", 2)
		c.routed("a", lab.OutsideIP(1))
		c.routed(lab.OutsideName(1), late.IPv4)
		c.routed(lab.OutsideName(2), late.IPv6)
		if err := c.Detach(t.Context(), "between"); err != nil {
			c.t.Fatal(err)
		}
	})
}

// frrNetwork has FRR on a router announce an IPv4 network, or take it back.
func (c cluster) frrNetwork(router, command string) {
	c.t.Helper()
	var script strings.Builder
	script.WriteString("vtysh")
	for _, s := range []string{"configure terminal", fmt.Sprintf("router bgp %d", lab.RoutersAS), "address-family ipv4 unicast", command} {
		fmt.Fprintf(&script, " -c %q", s)
	}
	c.run(router, script.String())
}

// learned waits until a speaker has a route, or has it no more.
func (c cluster) learned(host, prefix string, want bool) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s, learned by %s: %v", prefix, host, want), func() error {
		if s := c.inspectBGP(host); slices.Contains(s.Routes, prefix) != want {
			return fmt.Errorf("it has %v", s.Routes)
		}
		return nil
	})
}
