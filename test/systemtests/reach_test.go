package systemtests

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

// controlPorts are those that no container reaches on any host: of the daemons of the
// lab, and others, where the test listens itself.
var controlPorts = []int{2379, 2380, 6666, 8300, 8500, 8600, 9001, 9002, 9003, 9090, 9999}

// listens has something listen on TCP ports of a host, all addresses, unless somebody
// does so already.
func (c cluster) listens(host string, ports ...int) {
	c.t.Helper()
	for _, port := range ports {
		var l net.Listener
		if err := c.inside(host, func() (err error) {
			l, err = (&net.ListenConfig{}).Listen(c.t.Context(), "tcp", fmt.Sprint(":", port))
			return err
		}); err != nil {
			if strings.Contains(err.Error(), "address already in use") {
				continue // by a daemon
			}
			c.t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
		c.t.Cleanup(func() {
			_ = l.Close()
			<-done
		})
	}
}

// attempts is how long connections are tried that are not to come about: until after the
// second SYN (RFC 6298). A slower machine makes the test say less, not something wrong.
const attempts = 1500 * time.Millisecond

// connected tries TCP connections from a container to all ports of all addresses, and
// returns those that came about.
func (c cluster) connected(from string, addresses []string, ports ...int) (open []string) {
	c.t.Helper()
	type try struct {
		fd int
		to netip.AddrPort
	}
	var tries []try
	err := c.inside(from, func() error {
		for _, address := range addresses {
			for _, port := range ports {
				to := netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port))
				family := unix.AF_INET
				var sa unix.Sockaddr = &unix.SockaddrInet4{Port: port, Addr: [4]byte(netip.IPv4Unspecified().AsSlice())}
				if to.Addr().Is4() {
					sa = &unix.SockaddrInet4{Port: port, Addr: to.Addr().As4()}
				} else {
					family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: to.Addr().As16()}
				}
				fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				tries = append(tries, try{fd, to})
				if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
					return fmt.Errorf("connect to %s: %w", to, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	time.Sleep(attempts)
	for _, x := range tries {
		if _, err := unix.Getpeername(x.fd); err == nil {
			open = append(open, x.to.String())
		}
		_ = unix.Close(x.fd)
	}
	return open
}

// TestControlPlaneIsOutOfReach: containers connect to no port of the control plane on
// any host, by whatever address, and to everything else as ever.
func TestControlPlaneIsOutOfReach(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	for _, n := range []string{"1", "2"} {
		c.run("host"+n, "ip addr add fd00:2::"+n+"/64 dev eth0 nodad")
	}
	c.run("host1", "ip -6 route add default via fd00:2::2; echo 1 > /proc/sys/net/ipv4/conf/"+c.Config().TunnelInterface()+"/forwarding")
	c.restart("host1", "netplugin", syscall.SIGTERM) // it forwards IPv6 before long without this, too
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "front", "--tenant", "blue", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("net", "create", "-n", "infra", "--subnet=132.1.1.0/24", "--gateway=132.1.1.1", "contivh1")
	c.netctl("group", "create", "front", "grouped")
	c.attach("host1", "web", "front")
	c.attachGroup("host1", "grouped", "front", "grouped")
	c.attach("host1", "blue", "blue/front")
	const free = 8080
	infra := map[string]string{}
	for _, host := range []string{"host1", "host2"} {
		c.listens(host, append([]int{free}, controlPorts...)...)
		c.becomes(host, "ip -br addr show contivh1 | grep -q 132.1.1.")
		infra[host], _, _ = strings.Cut(strings.Fields(c.run(host, "ip -4 -br addr show contivh1"))[2], "/")
	}
	addresses := []string{
		"172.19.255.254", "fd63:6f6e:7469:ac13::fffe", "192.168.2.10", "192.168.60.10", "fd00:2::1", // of its own host
		"192.168.2.11", "192.168.60.11", "fd00:2::2", // of another one
	}
	c.eventually("the hosts' addresses are known", func() error {
		rules := c.run("host1", "nft list table inet contiv")
		for _, a := range []string{"192.168.2.11", "192.168.60.11", "fd00:2::2"} {
			if !strings.Contains(rules, a) {
				return fmt.Errorf("no rule about %s:\n%s", a, rules)
			}
		}
		return nil
	})
	holds := func(t *testing.T, from string, addresses []string) {
		t.Helper()
		c := cluster{c.Lab, t}
		c.eventually(fmt.Sprintf("there is a way from %s to port %d everywhere", from, free), func() error {
			if open := c.connected(from, addresses, free); len(open) != len(addresses) {
				return fmt.Errorf("of %v only to %v", addresses, open)
			}
			return nil
		})
		if open := c.connected(from, addresses, controlPorts...); len(open) > 0 {
			t.Errorf("%s connects to %s", from, strings.Join(open, ", "))
		}
	}
	for _, from := range []string{"web", "grouped", "blue"} {
		t.Run(from, func(t *testing.T) { holds(t, from, addresses) })
	}
	t.Run("by the infra network", func(t *testing.T) { holds(t, "web", []string{infra["host1"], infra["host2"]}) })
	t.Run("after a restart", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.restart("host1", "netplugin", syscall.SIGKILL)
		holds(t, "web", addresses)
	})
	t.Run("by a published port", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.run("host1", "nft 'add table ip published; add chain ip published pre { type nat hook prerouting priority dstnat; }; "+
			"add rule ip published pre tcp dport 30080 dnat to 192.168.2.10:8080; add rule ip published pre tcp dport { 30090, 30091 } dnat to tcp dport map { 30090 : 192.168.2.10 . 9090, 30091 : 192.168.2.11 . 9090 }'")
		if open := c.connected("web", []string{"192.168.2.10"}, 30080, 30090, 30091); len(open) != 1 || open[0] != "192.168.2.10:30080" {
			t.Errorf("connections to %v, expected one, to port 30080", open)
		}
	})
	t.Run("past the switch", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.pastTheSwitch("web")
	})
	t.Run("the same ports elsewhere", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.run("host2", "ip netns add elsewhere && ip link add out type veth peer name in netns elsewhere && ip addr add 198.51.100.1/24 dev out && ip link set out up && "+
			"ip -n elsewhere addr add 198.51.100.2/24 dev in && ip -n elsewhere link set in up && ip -n elsewhere route add default via 198.51.100.1 && echo 1 > /proc/sys/net/ipv4/ip_forward")
		h, err := c.Host("host2")
		if err != nil {
			t.Fatal(err)
		}
		var l net.Listener
		if err := nsenter.Host(h.PID(), "/run/netns/elsewhere", func() (err error) {
			l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp4", ":9090") // the kernel completes connections
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c.run("host1", "ip route add 198.51.100.2 via 192.168.2.11")
		c.eventually("the server is within reach", func() error {
			if len(c.connected("web", []string{"198.51.100.2"}, 9090)) == 0 {
				return fmt.Errorf("no connection to port 9090 of a server that is no host")
			}
			return nil
		})
	})
}

// TestContainerReachSetting: what a setting opens is within reach, and nothing else.
func TestContainerReachSetting(t *testing.T) {
	c := up(t, lab.Config{Hosts: 1, AgentFlags: []string{"--container-reach", "9090/tcp", "--control-ports", "7777"}})
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	c.attach("host1", "web", "front")
	c.listens("host1", 7777)
	c.eventually("what the setting opens is within reach", func() error {
		if open := c.connected("web", []string{"172.19.255.254"}, 9090); len(open) == 0 {
			return fmt.Errorf("no connection")
		}
		return nil
	})
	if open := c.connected("web", []string{"172.19.255.254", "192.168.2.10"}, 2379, 9001, 9002, 9003, 9999, 7777); len(open) > 0 {
		t.Errorf("connections to %v", open)
	}
}

// pastTheSwitch sends frames that a host itself would take from the switch's end of a
// container's interface, if it took any there.
func (c cluster) pastTheSwitch(from string) {
	c.t.Helper()
	container, err := c.Container(from)
	if err != nil {
		c.t.Fatal(err)
	}
	var conn net.PacketConn
	if err := c.inside(container.Host, func() (err error) {
		conn, err = (&net.ListenConfig{}).ListenPacket(c.t.Context(), "udp4", ":8081")
		return err
	}); err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	port := strings.TrimSpace(c.run(container.Host, "ovs-vsctl --bare --columns=name find Interface external_ids:contiv-container="+container.ContainerID))
	if port == "" {
		c.t.Fatal("the container has no port")
	}
	mac := strings.TrimSpace(c.run(container.Host, "cat /sys/class/net/"+port+"/address"))
	w := c.wire(from, "eth0")
	for _, dst := range []string{mac, "ff:ff:ff:ff:ff:ff"} {
		frame := udpFrame(container.MAC, dst, container.IPv4, "192.168.2.10", 8081, []byte("past the switch"))
		for range 3 {
			if err := w.send(frame); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	c.sendUDP(from, "", "192.168.2.10:8081", []byte("through the switch"))
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		c.t.Fatal(err)
	}
	buf := make([]byte, 100)
	for {
		n, peer, err := conn.ReadFrom(buf)
		if err != nil {
			c.t.Fatal(err)
		}
		// The switch leads what is for the host there whatever its MAC address, but under
		// the container's private address.
		if source := peer.(*net.UDPAddr).AddrPort().Addr().String(); source == container.IPv4 {
			c.t.Fatalf("the host has taken %q of %s from %s", buf[:n], source, port)
		}
		if string(buf[:n]) == "through the switch" {
			return
		}
	}
}
