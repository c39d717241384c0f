package systemtests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

const bgpPassword = "open-sesame"

// TestBGP: containers and computers beyond the routers of the physical network reach
// each other by what hosts and routers, FRR and BIRD, tell each other.
func TestBGP(t *testing.T) {
	t.Parallel() // it mostly waits
	c := up(t, lab.Config{
		Hosts: 2, NetMode: "vlan", FwdMode: "routing", Routers: []string{lab.RouterFRR, lab.RouterBIRD}, BGPPassword: bgpPassword, BGPTTLSecurity: []int{2},
	})
	c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "101", "--subnet=10.3.1.0/24", "--gateway=10.3.1.254", "--subnetv6=2001:db8:3::/100", "--gatewayv6=2001:db8:3::fe")
	a := c.attach("host1", "a", "office")
	c.speaker(1, bgpPassword)
	c.speaker(2, bgpPassword, "--ttl-security")
	b := c.attach("host2", "b", "office")
	c.established("host1", 2)
	c.established("host2", 2)

	t.Run("routes of both families go both ways", func(t *testing.T) {
		c := cluster{c.Lab, t}
		learned := []string{"60.1.1.0/24", "60.1.2.0/24", "70.1.1.1/32", "2001:db8:60:1::/64", "2001:db8:60:2::/64", "2001:db8:70::1/128"}
		c.eventually("host1 has learned and announced", func() error {
			s := c.inspectBGP("host1")
			for _, p := range learned {
				if !slices.Contains(s.Routes, p) {
					return fmt.Errorf("%s is not learned: %v", p, s.Routes)
				}
			}
			if diff := cmp.Diff([]string{a.IPv4 + "/32", a.IPv6 + "/128"}, s.Advertised); diff != "" {
				return fmt.Errorf("announced (-want +got):\n%s", diff)
			}
			return nil
		})
		for _, r := range c.Routers() {
			for _, to := range []lab.Container{a, b} {
				c.eventually(r.Name+" has routes to "+to.Name, func() error {
					if got := c.run(r.Name, "ip route show "+to.IPv4+"; ip -6 route show "+to.IPv6); strings.Count(got, "trunk") != 2 {
						return fmt.Errorf("it has %q", got)
					}
					return nil
				})
			}
		}
	})
	outsides := []string{lab.OutsideIP(1), lab.OutsideIP6(1), lab.OutsideIP(2), lab.OutsideIP6(2), lab.AnycastIP, lab.AnycastIP6}
	t.Run("reachability", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, address := range outsides {
			c.routed("a", address)
			c.routed("b", address)
		}
		for n := 1; n <= 2; n++ {
			for _, to := range []lab.Container{a, b} {
				c.reaches(lab.OutsideName(n), to.IPv4)
				c.reaches(lab.OutsideName(n), to.IPv6)
			}
		}
		c.reaches("a", lab.RouterIP(1))
		c.reaches("a", b.IPv4)
		c.transfer("a", lab.Container{Name: lab.OutsideName(1), IPv4: lab.OutsideIP(1), IPv6: lab.OutsideIP6(1)})
	})
	t.Run("a host is no transit", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.reachesNot(lab.OutsideName(1), lab.OutsideIP(2))
		if got := c.run("router1", "ip route show "+lab.OutsideIP(2)+"; ip route show 60.1.2.0/24"); got != "" {
			t.Errorf("router1 has been told of what is behind router2: %q", got)
		}
	})
	t.Run("containers come and go", func(t *testing.T) {
		c := cluster{c.Lab, t}
		late := c.attach("host1", "late", "office")
		c.routed(lab.OutsideName(2), late.IPv4)
		if err := c.Detach(t.Context(), "late"); err != nil {
			t.Fatal(err)
		}
		c.eventually("it is withdrawn", func() error {
			if got := c.run("router2", "ip route show "+late.IPv4); got != "" {
				return fmt.Errorf("router2 has %q", got)
			}
			// Routers pass the word on to those they have it from.
			if s := c.inspectBGP("host1"); slices.Contains(s.Routes, late.IPv4+"/32") || slices.Contains(s.Routes, late.IPv6+"/128") {
				return fmt.Errorf("host1 still hears of it: %v", s.Routes)
			}
			return nil
		})
	})
	t.Run("restart of netplugin under traffic", func(t *testing.T) {
		c := cluster{c.Lab, t}
		flows := c.flows("host1", vlanBridge)
		noneGone := c.watchFlows("host1")
		noneLost4, noneLost6 := c.watch(lab.OutsideName(1), a.IPv4), c.watch("a", lab.OutsideIP6(2))
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
			c.restart("host1", "netplugin", signal)
			c.established("host1", 2)
		}
		noneLost4()
		noneLost6()
		noneGone()
		c.eventually("the flows are those of before", func() error {
			if diff := cmp.Diff(flows, c.flows("host1", vlanBridge)); diff != "" {
				return fmt.Errorf("(-before +after):\n%s", diff)
			}
			return nil
		})
	})
	t.Run("a router's daemon restarts", func(t *testing.T) {
		for _, r := range c.Routers() {
			c := cluster{c.Lab, t}
			if err := r.StopBGP(t.Context(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			c.eventually("host1 has lost the session with "+r.Name, func() error {
				if n := c.inspectBGP("host1").sessions(); n != 1 {
					return fmt.Errorf("%d sessions", n)
				}
				return nil
			})
			c.routed("a", lab.AnycastIP) // by the other
			c.routed("a", lab.AnycastIP6)
			if err := r.StartBGP(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.established("host1", 2)
			c.established("host2", 2)
			c.routed("a", lab.OutsideIP(r.Number))
			c.routed(lab.OutsideName(r.Number), b.IPv6)
		}
	})
	t.Run("the switch restarts", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.restart("host1", "ovs", syscall.SIGKILL)
		c.ready("host1", "netplugin")
		c.routed("a", lab.OutsideIP(1))
		c.routed(lab.OutsideName(2), a.IPv6)
		c.established("host1", 2)
	})
	t.Run("a wrong password, then the right one", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.speaker(2, "open-barley", "--ttl-security")
		c.eventually("no session", func() error {
			if n := c.inspectBGP("host2").sessions(); n != 0 {
				return fmt.Errorf("%d sessions", n)
			}
			return nil
		})
		c.eventually("no route", func() error {
			if out, err := c.Output(t.Context(), lab.OutsideName(1), "ping", "-c", "1", "-W", "1", b.IPv4); err == nil {
				return fmt.Errorf("b is reached: %s", out)
			}
			return nil
		})
		c.speaker(2, bgpPassword, "--ttl-security")
		c.established("host2", 2)
		c.routed(lab.OutsideName(1), b.IPv4)
	})
	t.Run("TTL security at one end only, then at both", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.speaker(2, bgpPassword)
		c.eventually("no session", func() error {
			if n := c.inspectBGP("host2").sessions(); n != 0 {
				return fmt.Errorf("%d sessions", n)
			}
			return nil
		})
		c.speaker(2, bgpPassword, "--ttl-security")
		c.established("host2", 2)
	})
	t.Run("routers and what is behind them reach nothing of a host but BGP and ping", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, router := range []string{lab.HostRouterIP(1), lab.HostRouterIP6(1)} {
			address, _, _ := strings.Cut(router, "/")
			c.run("host1", "nc -z -w 3 "+address+" 9090") // netplugin does listen there
			if out, err := c.Output(t.Context(), "router1", "nc", "-z", "-w", "1", address, "9090"); err == nil {
				t.Errorf("router1 reaches port 9090 of host1 by %s: %s", address, out)
			}
			c.reachesNot(lab.OutsideName(1), address)
		}
		address, _, _ := strings.Cut(lab.HostRouterIP(1), "/")
		c.reaches("router1", address)
	})
	bgpChanges(t, c.Lab, a)
	t.Run("removal", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.netctl("bgp", "rm", "host1")
		c.eventually("nothing of it is left", func() error {
			if out, err := c.Output(t.Context(), "host1", "ip", "link", "show", "inb01"); err == nil {
				return fmt.Errorf("the port is there: %s", out)
			}
			for _, f := range c.flows("host1", vlanBridge) {
				if strings.Contains(f, "->reg10,goto_table") && strings.Contains(f, "=60.1.") || strings.Contains(f, "group:") {
					return fmt.Errorf("a flow is left: %s", f)
				}
			}
			if got := c.run("router1", "ip route show "+a.IPv4); got != "" {
				return fmt.Errorf("router1 has %q", got)
			}
			return nil
		})
		c.reaches("a", b.IPv4)
	})
}

// speaker makes a host talk to both routers.
func (c cluster) speaker(host int, password string, flags ...string) {
	c.t.Helper()
	c.netctl(append([]string{
		"bgp", "create", lab.HostName(host), "--router-ip", lab.HostRouterIP(host), "--router-ip6", lab.HostRouterIP6(host),
		"--as", fmt.Sprint(lab.HostsAS), "--neighbor", lab.RouterIP(1), "--neighbor-as", fmt.Sprint(lab.RoutersAS),
		"--more-neighbors", lab.RouterIP(2), "--password", password,
	}, flags...)...)
}

// bgpState is what netctl bgp inspect shows of a speaker at work.
type bgpState struct {
	NeighborStatus     string
	Routes, Advertised []string
	Neighbors          []struct{ Address, Status string }
}

func (s bgpState) sessions() (n int) {
	for _, neighbor := range s.Neighbors {
		if neighbor.Status == "established" {
			n++
		}
	}
	return n
}

// inspectBGP is the state of a speaker; the zero value as long as there is none.
func (c cluster) inspectBGP(host string) bgpState {
	c.t.Helper()
	out, err := c.NetctlOutput(c.t.Context(), "bgp", "inspect", host)
	var answer struct{ Oper bgpState }
	if err == nil {
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			c.t.Fatalf("%v in %s", err, out)
		}
	}
	return answer.Oper
}

// established waits until a host has that many sessions.
func (c cluster) established(host string, sessions int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s has %d BGP sessions", host, sessions), func() error {
		if s := c.inspectBGP(host); s.sessions() != sessions {
			return fmt.Errorf("it has %+v", s)
		}
		return nil
	})
}

// routed waits until an address is reached: routes take their time.
func (c cluster) routed(from, address string) {
	c.t.Helper()
	c.eventually(from+" reaches "+address, func() error {
		if out, err := c.Output(c.t.Context(), from, "ping", "-c", "1", "-W", "2", address); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
}
