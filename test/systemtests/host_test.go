package systemtests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

const probePort = "8080"

// TestHostReachesContainers: in every mode the host reaches its containers by their own
// addresses, as probes do.
func TestHostReachesContainers(t *testing.T) {
	for _, mode := range []struct {
		name, encap, fwd string
		flags            []string
	}{
		{"VXLAN routing", "vxlan", "routing", nil},
		{"VXLAN bridge", "vlan", "bridge", []string{"--encap", "vxlan"}},
		{"VLAN bridge", "vlan", "bridge", []string{"--encap", "vlan"}},
		{"VLAN routing", "vlan", "routing", []string{"--encap", "vlan"}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 1, NetMode: mode.encap, FwdMode: mode.fwd})
			create := []string{"net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe"}
			c.netctl(append(create, mode.flags...)...)
			web := c.attach("host1", "web", "front")
			if mode.name == "VLAN bridge" { // where a real router is the gateway
				c.run("web", "ip neigh replace 20.1.1.254 lladdr 02:00:00:00:00:01 dev eth0; ip neigh replace 2001:db8:1::fe lladdr 02:00:00:00:00:01 dev eth0")
			}
			c.serveHTTP("web")
			for _, address := range []string{web.IPv4, web.IPv6} {
				c.probes("host1", address)
			}
			t.Run("under rules", func(t *testing.T) {
				c := cluster{c.Lab, t}
				c.netctl("policy", "create", "closed")
				c.netctl("policy", "rule-add", "closed", "1", "-d", "in", "--action", "deny")
				c.netctl("policy", "rule-add", "closed", "2", "-d", "out", "--action", "deny")
				c.netctl("group", "create", "front", "shut", "-p", "closed")
				in, err := c.Attach(t.Context(), lab.Attachment{Host: "host1", Name: "shut", Network: "front", Group: "shut"})
				if err != nil {
					t.Fatal(err)
				}
				if mode.name == "VLAN bridge" {
					c.run("shut", "ip neigh replace 20.1.1.254 lladdr 02:00:00:00:00:01 dev eth0; ip neigh replace 2001:db8:1::fe lladdr 02:00:00:00:00:01 dev eth0")
				}
				c.serveHTTP("shut")
				c.probes("host1", in.IPv4)
				c.probes("host1", in.IPv6)
				c.becomes("shut", "! ping -c 1 -W 1 172.19.255.254")
				c.becomes("web", "! ping -c 1 -W 1 "+in.IPv4)
				c.probes("host1", in.IPv4)
			})
			t.Run("restart of netplugin", func(t *testing.T) {
				c := cluster{c.Lab, t}
				noneGone, noneLost4, noneLost6 := c.watchFlows("host1"), c.watch("host1", web.IPv4), c.watch("host1", web.IPv6)
				for range restartRounds() {
					c.restart("host1", "netplugin", syscall.SIGKILL)
				}
				noneGone()
				noneLost4()
				noneLost6()
			})
			t.Run("restart of the switch", func(t *testing.T) {
				c := cluster{c.Lab, t}
				c.restart("host1", "ovs", syscall.SIGKILL)
				c.probes("host1", web.IPv4)
				c.probes("host1", web.IPv6)
			})
			t.Run("detach", func(t *testing.T) {
				c := cluster{c.Lab, t}
				if err := c.Detach(t.Context(), "web"); err != nil {
					t.Fatal(err)
				}
				c.becomes("host1", "! ip route | grep -q '^20.1.1.1 ' && ! ip -6 route | grep -q '^2001:db8:1::1 '")
			})
		})
	}
}

// TestHostIsTheWayOut: containers of a routed VXLAN reach their host and, under its
// address, what is beyond; tenants with the same addresses do not meet there.
func TestHostIsTheWayOut(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "front", "--tenant", "blue", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	c.netctl("net", "create", "loose", "--tenant", "blue", "--subnet=20.1.3.0/24")
	for _, n := range []string{"1", "2"} { // IPv6 between the hosts
		c.run("host"+n, "ip addr add fd00:2::"+n+"/64 dev eth0 nodad")
	}
	c.run("host1", "ip -6 route add default via fd00:2::2")
	// It is noticed before long without this, too.
	c.restart("host1", "netplugin", syscall.SIGTERM)
	web := c.attach("host1", "web", "front")
	blueWeb := c.attach("host1", "blue-web", "blue/front")
	loose := c.attach("host1", "loose", "blue/loose")
	if web.IPv4 != blueWeb.IPv4 {
		t.Fatalf("the tenants' containers have %s and %s, expected the same address", web.IPv4, blueWeb.IPv4)
	}
	c.serveHTTP("web")
	c.serveHTTP("blue-web")
	c.serveHTTP("host1")
	c.serveHTTP("host2")

	t.Run("by private address", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.saysTo("host1", "172.19.0.1", "web to 172.19.255.254")
		c.saysTo("host1", "fd63:6f6e:7469:ac13::1", "web to fd63:6f6e:7469:ac13::fffe")
		c.saysTo("host1", "172.19.0.2", "blue-web to 172.19.255.254")
		c.saysTo("host1", web.IPv4, "web to 172.19.255.254")
	})
	t.Run("to the host", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.saysTo("web", "172.19.255.254", "host1 to "+web.IPv4)
		c.saysTo("web", "192.168.2.10", "host1 to 172.19.0.1")
		c.saysTo("web", "fd63:6f6e:7469:ac13::fffe", "host1 to "+web.IPv6)
		c.saysTo("blue-web", "172.19.255.254", "host1 to 172.19.0.2")
	})
	t.Run("to the world, under the host's address", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.saysTo("web", "192.168.2.11", "host2 to 192.168.2.10")
		c.saysTo("blue-web", "192.168.2.11", "host2 to 192.168.2.10")
		c.saysTo("loose", "192.168.2.11", "host2 to 192.168.2.10")
		c.saysTo("web", "fd00:2::2", "host2 to fd00:2::1")
	})
	t.Run("what fits the path is told", func(t *testing.T) { // RFC 1191, RFC 8201
		c := cluster{c.Lab, t}
		c.run("host1", "ip route add 192.168.2.11 dev eth0 mtu lock 1300 && ip -6 route add fd00:2::2 dev eth0 mtu lock 1300")
		for _, from := range []string{"web", "blue-web"} {
			c.becomes(from, "ping -c 1 -W 1 -M do -s 1350 192.168.2.11 2>&1 | grep 'mtu *= *1300'")
		}
		c.becomes("web", "ping -c 1 -W 1 -M do -s 1350 fd00:2::2 2>&1 | grep 'mtu *= *1300'")
		c.run("host1", "ip route del 192.168.2.11 dev eth0 && ip -6 route del fd00:2::2 dev eth0")
	})
	t.Run("not into another tenant", func(t *testing.T) {
		c := cluster{c.Lab, t}
		other := c.attach("host1", "other", "front")
		c.reaches("host1", other.IPv4)
		for _, address := range []string{"172.19.0.1", "172.19.0.2", loose.IPv4} {
			c.reachesNot("web", address)
		}
		c.reachesNot("loose", "172.19.0.1")
		// A router beside the host that knows where our containers are.
		c.run("host2", "ip route add 20.1.1.0/24 via 192.168.2.10")
		c.reachesNot("host2", other.IPv4)
		c.run("host2", "ip route del 20.1.1.0/24")
	})
	t.Run("the default tenant goes first", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if err := c.Detach(t.Context(), "web"); err != nil {
			t.Fatal(err)
		}
		c.becomes("host1", "ping -c 1 -W 1 "+blueWeb.IPv4)
		c.saysTo("host1", blueWeb.IPv4, "blue-web to 172.19.255.254")
		web = c.attach("host1", "web", "front")
		c.serveHTTP("web")
		c.saysTo("host1", web.IPv4, "web to 172.19.255.254")
	})
	t.Run("restart of netplugin", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.reaches("web", "192.168.2.11")
		noneGone, out, in := c.watchFlows("host1"), c.watch("web", "192.168.2.11"), c.watch("host1", web.IPv4)
		for range restartRounds() {
			c.restart("host1", "netplugin", syscall.SIGKILL)
		}
		noneGone()
		out()
		in()
	})
	t.Run("somebody flushes the rules", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.run("host1", "nft flush ruleset")
		c.becomes("host1", "nft list table inet contiv | grep -q masquerade")
		c.saysTo("web", "192.168.2.11", "host2 to 192.168.2.10")
	})
	t.Run("cleanup leaves nothing", func(t *testing.T) {
		c := cluster{c.Lab, t}
		h, err := c.Host("host1")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		t.Log(c.run("host1", "netplugin cleanup"))
		c.becomes("host1", "! ip -o link | grep -E 'contiv|vport' && ! ip route | grep 'proto 202' && ! ip -6 route | grep 'proto 202'")
		c.run("host1", "! nft list tables | grep contiv; [ $(cat /proc/sys/net/ipv4/conf/eth0/forwarding) = 0 ]")
	})
}

// TestInfraNetwork: the host has a port of its own in an infra network, and through
// contivh1 reaches the containers of all hosts.
func TestInfraNetwork(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100")
	c.netctl("net", "create", "-n", "infra", "--subnet=132.1.1.0/24", "--gateway=132.1.1.1", "contivh1")
	c.netctl("net", "create", "-n", "infra", "--subnet=132.1.2.0/24", "mgmt")
	web, far := c.attach("host1", "web", "front"), c.attach("host2", "far", "front")
	c.serveHTTP("far")
	for _, host := range []string{"host1", "host2"} {
		c.becomes(host, "ip -br addr show contivh1 | grep -q 132.1.1. && ip -br addr show mgmt | grep -q 132.1.2. && ip route | grep '^20.1.1.0/24 dev contivh1'")
	}
	own := strings.Fields(c.run("host1", "ip -4 -br addr show contivh1"))[2]
	t.Run("the host's endpoint", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.saysTo("host1", far.IPv4, "far to "+strings.TrimSuffix(own, "/24"))
		c.reaches("far", strings.TrimSuffix(own, "/24"))
		c.reaches("web", strings.TrimSuffix(own, "/24"))
		c.reaches("host1", web.IPv4)
	})
	t.Run("a network that comes and goes", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.netctl("net", "create", "back", "--subnet=30.1.1.0/24")
		c.becomes("host1", "ip route | grep '^30.1.1.0/24 dev contivh1'")
		c.netctl("net", "rm", "back")
		c.becomes("host1", "! ip route | grep '^30.1.1.0/24'")
	})
	t.Run("restarts", func(t *testing.T) {
		c := cluster{c.Lab, t}
		noneLost := c.watch("host1", far.IPv4)
		c.restart("host1", "netplugin", syscall.SIGKILL)
		noneLost()
		c.restart("host1", "ovs", syscall.SIGKILL)
		c.becomes("host1", "ip -br addr show contivh1 | grep "+own)
		c.reaches("host1", far.IPv4)
	})
	t.Run("goes with its network", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.netctl("net", "rm", "mgmt")
		c.netctl("net", "rm", "contivh1")
		for _, host := range []string{"host1", "host2"} {
			c.becomes(host, "! ip -o link | grep -E 'contivh1|mgmt' && ! ip route | grep -E '132.1|^20.1.1.0/24'")
		}
	})
}

// TestPrivateSubnetChange: nothing of the old subnet stays.
func TestPrivateSubnetChange(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1})
	all := "ip -br addr; ip route; ip -6 route; nft list ruleset; ovs-ofctl -O OpenFlow13 dump-flows " + vxlanBridge
	c.becomes("host1", "nft list table inet contiv | grep -q 172.19.0.0/16")
	c.netctl("global", "set", "--private-subnet", "172.20.0.0/16")
	c.becomes("host1", "out=$("+all+"); ! echo \"$out\" | grep -E '172.19|ac13' && echo \"$out\" | grep -q 172.20.0.0/16")
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	web := c.attach("host1", "web", "front")
	c.reaches("host1", web.IPv4)
	c.reaches("host1", "172.20.0.1")
	c.reaches("web", "172.20.255.254")
}

// serveHTTP has a container, or a host, answer with its name and who has asked.
func (c cluster) serveHTTP(name string) {
	c.t.Helper()
	host, netns := name, ""
	if container, err := c.Container(name); err == nil {
		host, netns = container.Host, container.Netns
	}
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	var listener net.Listener
	if err := nsenter.Host(h.PID(), netns, func() (err error) {
		listener, err = net.Listen("tcp", ":"+probePort)
		return err
	}); err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, "%s to %s", name, from)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	c.t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			c.t.Errorf("serve HTTP in %s: %v", name, err)
		}
	})
}

// probes holds that a host gets an answer by HTTP.
func (c cluster) probes(host, address string) { c.t.Helper(); c.saysTo(host, address, "") }

// saysTo holds that what listens at an address answers so, before long; "" is anything.
func (c cluster) saysTo(from, address, want string) {
	c.t.Helper()
	c.answered(from, net.JoinHostPort(address, probePort), fmt.Sprintf("%q", want), func(got string) bool { return want == "" || got == want })
}

// answers holds that what listens at an address and port answers, before long, with a text
// that begins so.
func (c cluster) answers(from, address, begin string) {
	c.t.Helper()
	c.answered(from, address, begin+"...", func(got string) bool { return strings.HasPrefix(got, begin) })
}

func (c cluster) answered(from, address, want string, ok func(string) bool) {
	c.t.Helper()
	host, netns := from, ""
	if container, err := c.Container(from); err == nil {
		host, netns = container.Host, container.Netns
	}
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, target string) (conn net.Conn, err error) {
			err = nsenter.Host(h.PID(), netns, func() (err error) {
				conn, err = (&net.Dialer{Timeout: patience}).DialContext(ctx, network, target)
				return err
			})
			return conn, err
		},
	}}
	var got string
	for deadline := time.Now().Add(eventually.Scaled(time.Minute)); ; time.Sleep(50 * time.Millisecond) {
		got, err = get(c.t.Context(), client, "http://"+address+"/")
		if err == nil && ok(got) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Errorf("GET from %s to %s: %q, %v, expected %s", from, address, got, err, want)
			return
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// becomes waits until a shell script succeeds.
func (c cluster) becomes(name, script string) {
	c.t.Helper()
	var out string
	var err error
	for deadline := time.Now().Add(eventually.Scaled(2 * time.Minute)); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if out, err = c.Output(c.t.Context(), name, "sh", "-c", script); err == nil {
			return
		}
	}
	c.t.Errorf("in %s, %s: %v\n%s", name, script, err, out)
	if !slices.Contains([]string{"host1", "host2"}, name) {
		return
	}
	look, _ := c.Output(c.t.Context(), name, "sh", "-c", "ip -br addr; ip route; ip -6 route; nft list ruleset")
	c.t.Log(look)
}
