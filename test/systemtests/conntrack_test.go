package systemtests

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
)

// vswitchd is the process id of a host's ovs-vswitchd: another one means that it died.
func (c cluster) vswitchd(host string) string {
	c.t.Helper()
	return c.run(host, "cat /run/openvswitch/ovs-vswitchd.pid")
}

// sameSwitch holds that ovs-vswitchd of a host is still the process it was.
func (c cluster) sameSwitch(host, pid string) {
	c.t.Helper()
	if out, err := c.Output(c.t.Context(), host, "kill", "-0", pid); err != nil {
		h, _ := c.Host(host)
		c.t.Fatalf("ovs-vswitchd of %s, process %s, has ended: %v %s\n%s", host, pid, err, out, h.LogTail("ovs-vswitchd"))
	}
	if now := c.vswitchd(host); now != pid {
		c.t.Fatalf("ovs-vswitchd of %s is process %s, was %s", host, now, pid)
	}
}

// dialFrom opens a connection from a port of a container's own. It is closed with a
// reset, so that the port can be used again at once.
func (c cluster) dialFrom(from lab.Container, network, address string, port int) (conn net.Conn, err error) {
	c.t.Helper()
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	own := from.IPv4
	if to.Addr().Is6() {
		own = from.IPv6
	}
	var local net.Addr = &net.TCPAddr{IP: net.ParseIP(own), Port: port}
	if network == "udp" {
		local = &net.UDPAddr{IP: net.ParseIP(own), Port: port}
	}
	err = c.within(from, func() error {
		d := net.Dialer{Timeout: patience, LocalAddr: local, Control: shareAddress}
		conn, err = d.DialContext(c.t.Context(), network, address)
		return err
	})
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		err = tcp.SetLinger(0)
	}
	return conn, err
}

// shareAddress lets sockets to different peers have one port.
func shareAddress(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) })
	return errors.Join(err, failed)
}

// whoFrom is who from a port of the container's own.
func (c cluster) whoFrom(from lab.Container, network, address string, port int) (string, error) {
	c.t.Helper()
	conn, err := c.dialFrom(from, network, address, port)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return ask(conn, patience)
}

// ctTimeouts are the time-outs of connections that churn, in seconds. The switch takes
// away what has expired at leisure: what is asked for between is what these tests are about.
const ctTimeouts = "tcp_syn_sent=1 tcp_syn_recv=1 tcp_established=1 tcp_fin_wait=1 tcp_time_wait=1 tcp_close=1 " +
	"udp_first=1 udp_single=1 udp_multiple=1 icmp_first=1 icmp_reply=1"

// shortTimeouts makes connections of all zones that Contiv uses for the first tenants
// expire soon.
func (c cluster) shortTimeouts(host string) {
	c.t.Helper()
	kind := c.Config().Datapath
	script := "ovs-vsctl --id=@d create Datapath datapath_version=test -- set Open_vSwitch . datapaths:" + kind + "=@d >/dev/null\n"
	for vrf := 1; vrf <= 4; vrf++ {
		for _, zone := range []int{vrf, vrf | 1<<14, vrf | 1<<15} {
			script += fmt.Sprintf("ovs-vsctl --may-exist add-zone-tp %s zone=%d %s\n", kind, zone, ctTimeouts)
		}
	}
	c.run(host, script)
}

// TestExpiredConnection: a connection that has expired, and that the switch has not
// swept yet, is asked for again: straight to a container that provides a service, and
// through the service.
func TestExpiredConnection(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	provider := c.attach("host1", "provider", "net")
	client := c.attach("host1", "client", "net")
	c.provide(provider)
	c.event("start", provider, map[string]string{"app": "web"})
	c.netctl("service", "create", "web", "--network", "net", "--selector", "app=web", "--port", "80:8080:TCP", "--port", "53:8080:UDP")
	svc := c.serviceWith("web", 1)
	c.shortTimeouts("host1")
	pid := c.vswitchd("host1")
	port := 20000
	try := func(network, address string) {
		port++
		for round := range 3 {
			if name, err := c.whoFrom(client, network, address, port); err != nil || name != provider.Name {
				c.sameSwitch("host1", pid)
				t.Fatalf("round %d, %s to %s from port %d: answered by %q, %v", round, network, address, port, name, err)
			}
			// Open vSwitch 3.1 tells when it has expired; later ones show it until it is swept,
			// half a minute later.
			last := time.Now()
			c.eventually("the connection expires", func() error {
				out := c.run("host1", "ovs-appctl dpctl/dump-conntrack")
				if time.Since(last) < 2*time.Second && strings.Contains(out, "="+strconv.Itoa(port)+",") {
					return fmt.Errorf("still there:\n%s", out)
				}
				return nil
			})
		}
		c.sameSwitch("host1", pid)
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, own := range []string{provider.IPv4, provider.IPv6} {
			try(network, net.JoinHostPort(own, "8080"))
		}
	}
	svc.each(try)
}

// TestOnePortBothWays: a client uses one port of its own for a connection through a
// service and, at the same time, for one straight to the provider, in either order. To the
// provider they would be one.
func TestOnePortBothWays(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	client := c.attach("host1", "client", "net")
	port := 1023 // of both halves, and privileged ones
	for _, host := range []string{"host1", "host2"} {
		provider := c.attach(host, "provider-"+host, "net")
		c.provide(provider)
		c.event("start", provider, map[string]string{"app": host})
		c.netctl("service", "create", host, "--network", "net", "--selector", "app="+host, "--port", "80:8080:TCP", "--port", "53:8080:UDP")
		c.serviceWith(host, 1).each(func(network, address string) {
			straight := net.JoinHostPort(provider.IPv4, "8080")
			if netip.MustParseAddrPort(address).Addr().Is6() {
				straight = net.JoinHostPort(provider.IPv6, "8080")
			}
			for _, order := range [][]string{{straight, address}, {address, straight}} {
				for _, port := range []int{port, port + 40000} {
					var open []net.Conn
					for _, to := range order {
						conn, err := c.dialFrom(client, network, to, port)
						if err != nil {
							t.Fatalf("%s from port %d to %s, as one of %v: %v", network, port, to, order, err)
						}
						defer conn.Close()
						open = append(open, conn)
						// What the switch has learned from this it notices within a second.
						c.run("host1", "ovs-appctl revalidator/wait")
						for i, conn := range open {
							if name, err := ask(conn, patience); err != nil || name != provider.Name {
								t.Errorf("%s from port %d to %s, as one of %v: answered by %q, %v", network, port, order[i], order, name, err)
							}
						}
					}
				}
				port++
			}
		})
	}
}
