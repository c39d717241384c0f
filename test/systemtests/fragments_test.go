package systemtests

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab"
)

// largePort is where containers answer datagrams of any size (see provideLarge).
const largePort = "8090"

// provideLarge has a container answer datagrams at largePort: each asks, in its first line,
// for an answer of so many bytes, and gets the container's name, what was received, and as
// many bytes as were asked for.
func (c cluster) provideLarge(container lab.Container) {
	c.t.Helper()
	for _, address := range []string{container.IPv4, container.IPv6} {
		var udp net.PacketConn
		err := c.within(container, func() (err error) {
			udp, err = net.ListenPacket("udp", net.JoinHostPort(address, largePort))
			return err
		})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { udp.Close() })
		go func() {
			for b := make([]byte, 1<<16); ; {
				n, from, err := udp.ReadFrom(b)
				if err != nil {
					return
				}
				var size int
				_, _ = fmt.Sscanf(string(b[:n]), "%d", &size)
				_, _ = udp.WriteTo(padded(fmt.Sprintf("%s %d", container.Name, n), size), from)
			}
		}()
	}
}

// padded is a line, and what makes it so many bytes.
func padded(line string, size int) []byte {
	out := []byte(line + "\n")
	return append(out, bytes.Repeat([]byte{'x'}, max(size-len(out), 0))...)
}

// exchange sends a datagram of one size to ask for an answer of another one, and tells who
// has answered.
func exchange(conn net.Conn, out, in int) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	request := padded(fmt.Sprint(in), out)
	if _, err := conn.Write(request); err != nil {
		return "", err
	}
	b := make([]byte, 1<<16)
	n, err := conn.Read(b)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	name, received, _ := strings.Cut(line, " ")
	if received != fmt.Sprint(len(request)) || n != max(in, len(line)+1) {
		return "", fmt.Errorf("%d of %d bytes arrived, and %d of %d came back", len(request), out, n, in)
	}
	return name, nil
}

// sizes are those of requests and answers: whole, and in fragments either way.
var sizes = [][2]int{{4000, 10}, {8000, 8000}, {10, 4000}, {10, 10}}

// TestFragments: datagrams in fragments reach services and come back, as those in one piece
// do, from the same host, across hosts and from a container that is its own provider.
func TestFragments(t *testing.T) {
	for _, mode := range []struct{ lab, encap, forward string }{
		{"vxlan", "vxlan", "routing"}, {"vlan", "vxlan", "bridge"}, {"vlan", "vlan", "routing"}, {"vlan", "vlan", "bridge"},
	} {
		t.Run(mode.encap+" "+mode.forward, func(t *testing.T) { fragments(t, mode.lab, mode.encap, mode.forward) })
	}
}

func fragments(t *testing.T, netMode, encap, forward string) {
	c := up(t, lab.Config{Hosts: 2, NetMode: netMode, FwdMode: forward})
	c.netctl("net", "create", "front", "--encap", encap, "--pkt-tag=101", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	client := c.attach("host1", "client", "front")
	providers := []lab.Container{c.attach("host1", "near", "front"), c.attach("host2", "far", "front"), c.attach("host2", "third", "front")}
	c.provideLarge(client)
	for _, p := range providers {
		c.provideLarge(p)
		c.event("start", p, map[string]string{"app": "web"})
	}
	c.netctl("service", "create", "web", "--network", "front", "--selector", "app=web", "--port", "53:"+largePort+":UDP")
	pids := map[string]string{}
	for _, h := range c.Hosts() {
		pids[h.Name] = c.vswitchd(h.Name)
	}
	svc := c.serviceWith("web", 3)
	for _, from := range append(slices.Clone(providers), client) {
		for _, address := range svc.addresses("udp") {
			c.exchanges(from, address, "near", "far", "third")
		}
	}
	for _, to := range append(slices.Clone(providers), client) {
		for _, from := range append(slices.Clone(providers), client) {
			if from.Name == to.Name {
				continue
			}
			c.exchanges(from, net.JoinHostPort(to.IPv4, largePort), to.Name)
			c.exchanges(from, net.JoinHostPort(to.IPv6, largePort), to.Name)
		}
	}
	for host, pid := range pids {
		c.sameSwitch(host, pid)
	}
}

// exchanges holds that datagrams of all sizes are answered by one of names, each on a
// connection of its own and then on one for all.
func (c cluster) exchanges(from lab.Container, address string, names ...string) {
	c.t.Helper()
	var conn net.Conn
	for round := range 2 {
		for i, size := range sizes {
			c.eventually(fmt.Sprintf("round %d, %d bytes from %s to %s, answered by %d", round, size[0], from.Name, address, size[1]), func() (err error) {
				if round == 0 || i == 0 {
					if conn, err = c.dial(from, "udp", address); err != nil {
						return err
					}
					c.t.Cleanup(func() { conn.Close() })
				}
				name, err := exchange(conn, size[0], size[1])
				if err == nil && !slices.Contains(names, name) {
					err = fmt.Errorf("%s answers", name)
				}
				return err
			})
		}
	}
}

// TestFragmentChurn: while connections expire after a second, containers send datagrams in
// fragments to a service and its providers from a handful of ports, and fragments that no
// datagram can be made of. Open vSwitch lives, rules hold, and afterwards all is well.
func TestFragmentChurn(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("policy", "create", "closed")
	c.netctl("policy", "rule-add", "closed", "1", "--direction", "in", "--action", "deny", "--protocol", "udp")
	c.netctl("group", "create", "net", "group", "--policy", "closed")
	closed := c.attachGroup("host2", "closed", "net", "group")
	client := c.attach("host1", "client", "net")
	providers := []lab.Container{c.attach("host1", "near", "net"), c.attach("host2", "far", "net")}
	var unwanted atomic.Int64
	c.hear(closed, &unwanted)
	for _, p := range providers {
		c.provideLarge(p)
		c.event("start", p, map[string]string{"app": "web"})
	}
	c.netctl("service", "create", "web", "--network", "net", "--selector", "app=web", "--port", "53:"+largePort+":UDP")
	svc := c.serviceWith("web", 2)
	pids := map[string]string{}
	for _, h := range c.Hosts() {
		c.shortTimeouts(h.Name)
		pids[h.Name] = c.vswitchd(h.Name)
	}
	targets := append(svc.addresses("udp"), net.JoinHostPort(closed.IPv4, largePort), net.JoinHostPort(closed.IPv6, largePort))
	for _, p := range providers {
		targets = append(targets, net.JoinHostPort(p.IPv4, largePort), net.JoinHostPort(p.IPv6, largePort))
	}
	ctx, cancel := context.WithTimeout(t.Context(), churnTime())
	defer cancel()
	var workers sync.WaitGroup
	var answered atomic.Int64
	for i := range 24 {
		workers.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(i), 2))
			for ctx.Err() == nil {
				to := targets[dice.IntN(len(targets))]
				conn, err := c.dialFrom(client, "udp", to, churnPorts[dice.IntN(len(churnPorts))])
				if err != nil {
					continue // the port is in use
				}
				name, err := exchange(conn, dice.IntN(9000), dice.IntN(9000))
				conn.Close()
				switch {
				case err == nil && name == "closed":
					t.Errorf("%s answers", name)
				case err == nil:
					answered.Add(1)
				}
			}
		})
	}
	workers.Go(func() { c.malformedFragments(ctx, client, targets) })
	workers.Wait()
	for host, pid := range pids {
		c.sameSwitch(host, pid)
	}
	if answered.Load() == 0 || unwanted.Load() != 0 {
		t.Errorf("%d datagrams were answered, %d came to whom nobody may send any", answered.Load(), unwanted.Load())
	}
	t.Logf("%d datagrams were answered", answered.Load())
	for _, address := range svc.addresses("udp") {
		c.exchanges(client, address, "near", "far")
	}
}

// hear counts the datagrams that a container gets at largePort.
func (c cluster) hear(container lab.Container, n *atomic.Int64) {
	c.t.Helper()
	for _, address := range []string{container.IPv4, container.IPv6} {
		var udp net.PacketConn
		err := c.within(container, func() (err error) {
			udp, err = net.ListenPacket("udp", net.JoinHostPort(address, largePort))
			return err
		})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { udp.Close() })
		go func() {
			for b := make([]byte, 1<<16); ; n.Add(1) {
				if _, _, err := udp.ReadFrom(b); err != nil {
					return
				}
			}
		}()
	}
}

// malformedFragments sends fragments that overlap, are tiny, are no beginning or have no end.
func (c cluster) malformedFragments(ctx context.Context, from lab.Container, targets []string) {
	fd := -1
	err := c.within(from, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	if err != nil {
		c.t.Error(err)
		return
	}
	defer unix.Close(fd)
	dice := rand.New(rand.NewPCG(3, 4))
	own := netip.MustParseAddr(from.IPv4)
	for ctx.Err() == nil {
		to := netip.MustParseAddrPort(targets[dice.IntN(len(targets))])
		if to.Addr().Is6() {
			continue
		}
		// Few offsets and few identifications: most of them meet.
		part := fragment{offset: []uint16{0, 0, 1, 20, 150, 160, 8000}[dice.IntN(7)], more: dice.IntN(3) > 0}
		payload := udpTo(own, to.Addr(), uint16(churnPorts[dice.IntN(len(churnPorts))]), to.Port(), make([]byte, 8*dice.IntN(170)))
		packet := ip4(own, to.Addr(), 17, 64, part, nil, payload)
		packet[5] = byte(dice.IntN(4)) // the kernel fills in the checksum
		_ = unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: to.Addr().As4()})
		time.Sleep(200 * time.Microsecond)
	}
}
