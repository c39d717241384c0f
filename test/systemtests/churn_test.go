package systemtests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/nsenter"
)

// churnTime is how long connections churn in each mode.
func churnTime() time.Duration {
	if long() {
		return 5 * time.Minute
	}
	return 15 * time.Second
}

// TestChurn: containers and hosts open short connections from a handful of ports, straight and
// through services, as fast as they can, while the switch lets them expire after a
// second: expired ones that are not swept yet are met all the time. Open vSwitch
// lives, and whoever asks gets an answer from who was asked.
func TestChurn(t *testing.T) {
	for _, mode := range []struct{ lab, encap, forward string }{
		{"vxlan", "vxlan", "routing"}, {"vlan", "vxlan", "bridge"}, {"vlan", "vlan", "routing"}, {"vlan", "vlan", "bridge"},
	} {
		t.Run(mode.encap+" "+mode.forward, func(t *testing.T) { churn(t, mode.lab, mode.encap, mode.forward) })
	}
}

// churnPorts are the source ports in use: each is used again before its former
// connection has been swept.
var churnPorts = []int{1023, 8080, 20000, 20001, 33333, 50000, 50001, 60000}

// errand is one thing to ask for, and who may answer.
type errand struct {
	from          string // for the log
	netns         string
	own           string // source address; "" for any
	network, to   string
	answers       []string
	done, retries atomic.Int64
}

func churn(t *testing.T, netMode, encap, forward string) {
	c := up(t, lab.Config{Hosts: 2, NetMode: netMode, FwdMode: forward})
	c.netctl("net", "create", "net", "--encap", encap, "--pkt-tag=101", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	var providers []lab.Container
	var names []string
	for _, host := range []string{"host1", "host2"} {
		p := c.attach(host, "provider-"+host, "net")
		c.provide(p)
		c.event("start", p, map[string]string{"app": "web"})
		providers, names = append(providers, p), append(names, p.Name)
	}
	client := c.attach("host1", "client", "net")
	c.provide(client)
	// Rules have connections tracked in one more zone.
	c.netctl("policy", "create", "open")
	c.netctl("policy", "rule-add", "open", "1", "--action", "allow", "--protocol", "tcp", "--port", "8080")
	c.netctl("group", "create", "net", "group", "--policy", "open")
	c.netctl("service", "create", "web", "--network", "net", "--selector", "app=web", "--port", "80:8080:TCP", "--port", "53:8080:UDP")
	svc := c.serviceWith("web", 2)

	var all []*errand
	pids := map[string]string{}
	for _, h := range c.Hosts() {
		c.shortTimeouts(h.Name)
		pids[h.Name] = c.vswitchd(h.Name)
	}
	inside := func(from lab.Container, network, to string, answers ...string) {
		h, err := c.Host(from.Host)
		if err != nil {
			t.Fatal(err)
		}
		own := from.IPv4
		if netip.MustParseAddrPort(to).Addr().Is6() {
			own = from.IPv6
		}
		all = append(all, &errand{
			from: from.Name, netns: fmt.Sprintf("/proc/%d/root%s", h.PID(), from.Netns), own: own, network: network, to: to, answers: answers,
		})
	}
	for _, from := range []lab.Container{client, providers[0], providers[1]} {
		svc.each(func(network, address string) { inside(from, network, address, names...) })
		for _, to := range append(providers, client) {
			for _, own := range []string{to.IPv4, to.IPv6} {
				if to.Name == from.Name {
					continue
				}
				for _, network := range []string{"tcp", "udp", "icmp"} {
					inside(from, network, net.JoinHostPort(own, "8080"), to.Name)
				}
			}
		}
	}
	// A host and its own container, by the container's own address.
	for _, p := range providers {
		if encap == "vlan" && forward == "bridge" {
			break // containers answer it by their gateway, which nobody is here
		}
		h, err := c.Host(p.Host)
		if err != nil {
			t.Fatal(err)
		}
		for _, own := range []string{p.IPv4, p.IPv6} {
			for _, network := range []string{"tcp", "udp", "icmp"} {
				all = append(all, &errand{
					from: h.Name, netns: fmt.Sprintf("/proc/%d/ns/net", h.PID()), network: network, to: net.JoinHostPort(own, "8080"), answers: []string{p.Name},
				})
			}
		}
	}

	for _, name := range []string{"host1", "host2", client.Name, providers[0].Name, providers[1].Name} {
		c.run(name, "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range") // who may send echo requests
	}
	ctx, cancel := context.WithTimeout(t.Context(), churnTime())
	defer cancel()
	var workers sync.WaitGroup
	for i := range 2 * len(all) {
		e := all[i/2]
		workers.Add(1)
		go func() {
			defer workers.Done()
			dice := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				c.churnOnce(ctx, e, churnPorts[dice.IntN(len(churnPorts))])
				// Now sooner, now later than the connection expires.
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(dice.IntN(1200)) * time.Millisecond):
				}
			}
		}()
	}
	workers.Wait()
	for host, pid := range pids {
		c.sameSwitch(host, pid)
	}
	var done, retries int64
	for _, e := range all {
		done, retries = done+e.done.Load(), retries+e.retries.Load()
	}
	t.Logf("%d connections, %d more tried again", done, retries)
	// And everything works.
	for _, e := range all {
		c.eventually(fmt.Sprintf("%s is answered by %s %s", e.from, e.network, e.to), func() error { return c.runErrand(t.Context(), e, 0) })
	}
}

// errWrongAnswer means that packets of one connection came to another.
var errWrongAnswer = errors.New("answered by the wrong one")

func (c cluster) churnOnce(ctx context.Context, e *errand, port int) {
	switch err := c.runErrand(ctx, e, port); {
	case err == nil:
		e.done.Add(1)
	case errors.Is(err, errWrongAnswer):
		c.t.Errorf("%s, port %d, to %s %s: %v", e.from, port, e.network, e.to, err)
	default: // the port is in use, or a packet of a connection that had just expired was lost
		e.retries.Add(1)
	}
}

// runErrand asks once, from a port of its own (0: any).
func (c cluster) runErrand(ctx context.Context, e *errand, port int) error {
	if e.network == "icmp" {
		return e.ping(port)
	}
	var local net.Addr = &net.TCPAddr{IP: net.ParseIP(e.own), Port: port}
	if e.network == "udp" {
		local = &net.UDPAddr{IP: net.ParseIP(e.own), Port: port}
	}
	var conn net.Conn
	err := nsenter.Network(e.netns, func() (err error) {
		d := net.Dialer{Timeout: time.Second, LocalAddr: local, Control: shareAddress}
		conn, err = d.DialContext(ctx, e.network, e.to)
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	name, err := ask(conn, time.Second)
	if err != nil {
		return err
	}
	for _, a := range e.answers {
		if name == a {
			return nil
		}
	}
	return fmt.Errorf("%w: %q, not %v", errWrongAnswer, name, e.answers)
}

// ping sends one echo request under an identifier (RFC 792, RFC 4443) and waits for the answer.
func (e *errand) ping(id int) error {
	to := netip.MustParseAddrPort(e.to).Addr()
	family, proto, kind, reply := unix.AF_INET, unix.IPPROTO_ICMP, byte(8), byte(0)
	var peer, own unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte(to.AsSlice()[:4])}, &unix.SockaddrInet4{Port: id}
	if to.Is6() {
		family, proto, kind, reply = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128, 129
		peer, own = &unix.SockaddrInet6{Addr: to.As16()}, &unix.SockaddrInet6{Port: id}
	}
	var fd int
	err := nsenter.Network(e.netns, func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, own); err != nil { // the port of such a socket is its identifier
		return err
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, []byte{kind, 0, 0, 0, 0, 0, 0, 1}, 0, peer); err != nil {
		return err
	}
	b := make([]byte, 64)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err == nil && (n == 0 || b[0] != reply) {
		err = fmt.Errorf("%w: % x", errWrongAnswer, b[:n])
	}
	return err
}
