package ovsd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers"
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/test/eventually"
)

// patience limits every wait of a test; a healthy run never takes that long.
const patience = 3 * time.Minute

var (
	vip4 = netip.MustParseAddr("10.1.1.200")
	vip6 = netip.MustParseAddr("2001:db8:1::200")
)

// webOf is a service of containers: port 80 of TCP and 53 of UDP.
func webOf(all ...container) drivers.Service {
	s := drivers.Service{ID: "web:default", Tenant: "default", VIPs: []netip.Addr{vip4, vip6}}
	for _, p := range []drivers.ServicePort{{Proto: of.ProtoTCP, Port: 80}, {Proto: of.ProtoUDP, Port: 53}} {
		for _, c := range all {
			for _, a := range []netip.Addr{c.ep.IPv4, c.ep.IPv6} {
				p.Providers = append(p.Providers, drivers.ServiceProvider{Addr: netip.AddrPortFrom(a, 8080), Tenant: "default"})
			}
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

// provide has a container answer with its IPv4 address each line of a TCP connection and
// each datagram.
func provide(t *testing.T, c container) {
	t.Helper()
	name := c.ep.IPv4.String()
	for _, a := range []netip.Addr{c.ep.IPv4, c.ep.IPv6} {
		var tcp net.Listener
		var udp net.PacketConn
		at := netip.AddrPortFrom(a, 8080).String()
		c.inside(t, func() (err error) {
			if tcp, err = net.Listen("tcp", at); err == nil {
				udp, err = net.ListenPacket("udp", at)
			}
			return err
		})
		serveStream(t, tcp, func(conn net.Conn) { answer(conn, name) })
		serveDatagrams(t, udp, func([]byte) []byte { return []byte(name + "\n") })
	}
}

func answer(conn net.Conn, name string) {
	for in := bufio.NewScanner(conn); in.Scan(); {
		fmt.Fprintln(conn, name)
	}
}

// dial opens a connection from inside a container.
func dial(t *testing.T, from container, network string, to netip.AddrPort) (net.Conn, error) {
	t.Helper()
	var conn net.Conn
	var err error
	from.inside(t, func() error {
		conn, err = net.DialTimeout(network, to.String(), patience)
		return nil
	})
	return conn, err
}

// ask sends a line and returns the answer.
func ask(conn net.Conn, within time.Duration) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(conn, "who"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// who opens a connection and asks who answers. Datagrams may be lost.
func who(t *testing.T, from container, network string, to netip.AddrPort) (string, error) {
	t.Helper()
	within := patience
	if network == "udp" {
		within = time.Second
	}
	conn, err := dial(t, from, network, to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return ask(conn, within)
}

func vipPorts() map[string][]netip.AddrPort {
	return map[string][]netip.AddrPort{
		"tcp": {netip.AddrPortFrom(vip4, 80), netip.AddrPortFrom(vip6, 80)},
		"udp": {netip.AddrPortFrom(vip4, 53), netip.AddrPortFrom(vip6, 53)},
	}
}

// serviceTraffic has containers use services of each other and of themselves.
func serviceTraffic(t *testing.T, d *Driver, client, server container) {
	other := newContainer(t, d, 3)
	provide(t, server)
	provide(t, other)
	names := []string{server.ep.IPv4.String(), other.ep.IPv4.String()}
	declare := func(t *testing.T, s drivers.Service) {
		t.Helper()
		d.Apply(s)
		ready(t, d)
		renewed(t) // a connection begun by the old flows could end nowhere
	}
	t.Cleanup(func() { d.Delete(drivers.KindService, "web:default") })
	tcp4 := vipPorts()["tcp"][0]

	t.Run("spread over providers", func(t *testing.T) {
		declare(t, webOf(server, other))
		for network, all := range vipPorts() {
			for _, vip := range all {
				var seen []string
				eventually.True(t, "both containers answer", func() bool {
					if name, err := who(t, client, network, vip); err == nil && !slices.Contains(seen, name) {
						seen = append(seen, name)
					}
					return len(seen) == 2
				})
			}
		}
	})
	t.Run("a provider reaches itself", func(t *testing.T) {
		declare(t, webOf(server, other))
		for network, all := range vipPorts() {
			for _, vip := range all {
				eventually.True(t, "the container answers itself", func() bool { name, err := who(t, server, network, vip); return err == nil && name == names[0] })
			}
		}
	})
	t.Run("counted", func(t *testing.T) {
		eventually.True(t, "the connection is counted", func() bool {
			if _, err := who(t, client, "tcp", tcp4); err != nil {
				t.Fatal(err)
			}
			counts, err := d.ServiceCounts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(counts, func(c drivers.ServiceCount) bool {
				return c.Client == client.ep.IPv4 && c.VIP == tcp4 && slices.Contains(names, c.Provider.Addr().String()) &&
					c.Proto == of.ProtoTCP && c.Service == "web:default" && c.PacketsIn > 0 && c.PacketsOut > 0 && c.BytesIn > 0 && c.BytesOut > 0
			})
		})
	})
	t.Run("providers come and go", func(t *testing.T) { serviceChurn(t, d, client, server, other) })
	t.Run("whoever keeps asking gets through to who is left", func(t *testing.T) { askOn(t, d, client, server, other) })
	t.Run("one port for the service and the provider", func(t *testing.T) {
		declare(t, webOf(server))
		open := func(to netip.AddrPort) net.Conn {
			t.Helper()
			d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{Port: 23456}, Control: func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
			}}
			var conn net.Conn
			client.inside(t, func() (err error) { conn, err = d.DialContext(t.Context(), "tcp", to.String()); return err })
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		for _, c := range []net.Conn{open(tcp4), open(netip.AddrPortFrom(server.ep.IPv4, 8080))} {
			for range 3 {
				if name, err := ask(c, patience); err != nil || name != names[0] {
					t.Errorf("from %s to %s: %q, %v", c.LocalAddr(), c.RemoteAddr(), name, err)
				}
			}
		}
	})
	t.Run("affinity", func(t *testing.T) {
		s := webOf(server, other)
		s.Affinity = time.Hour
		declare(t, s)
		first, err := who(t, client, "tcp", tcp4)
		if err != nil {
			t.Fatal(err)
		}
		// Connections made before the switch acts as declared do not become sticky.
		eventually.True(t, "the client stays with one provider", func() bool {
			for range 20 {
				name, err := who(t, client, "tcp", tcp4)
				if err != nil {
					t.Fatal(err)
				}
				if name != first {
					first = name
					return false
				}
			}
			return true
		})
		left := server
		if first == names[0] {
			left = other
		}
		alone := webOf(left)
		alone.Affinity = time.Hour
		declare(t, alone)
		eventually.True(t, "the other provider answers", func() bool { name, err := who(t, client, "tcp", tcp4); return err == nil && name != first })
		declare(t, s)
		for range 20 {
			if name, err := who(t, client, "tcp", tcp4); err != nil || name == first {
				t.Fatalf("%s answers after the client's provider was another: %v", name, err)
			}
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		declare(t, webOf())
		for network, all := range vipPorts() {
			for _, vip := range all {
				eventually.True(t, "connections are refused", func() bool { _, err := who(t, client, network, vip); return errors.Is(err, unix.ECONNREFUSED) })
			}
		}
		if _, err := who(t, client, "tcp", netip.AddrPortFrom(vip4, 4711)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("a port that the service does not have: %v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		d.Delete(drivers.KindService, "web:default")
		ready(t, d)
		counts, err := d.ServiceCounts(t.Context())
		if err != nil || len(counts) != 0 {
			t.Errorf("counts of a service that is gone: %+v, %v", counts, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if left := d.compiler.Frontends(); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

// askOn has a client ask by UDP from one port, again and again, while the backends change:
// packets sent while the datapath still uses stale flows must not pin it to a backend that
// is gone.
func askOn(t *testing.T, d *Driver, client, server, other container) {
	conn, err := dial(t, client, "udp", vipPorts()["udp"][0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = fmt.Fprintln(conn, "who") // refusals come and go
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for i := range 6 {
		left := []container{server, other}[i%2]
		d.Apply(webOf(left))
		ready(t, d)
		eventually.True(t, "the remaining provider answers", func() bool {
			buf := make([]byte, 100)
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			for { // past all earlier answers
				n, err := conn.Read(buf)
				if err != nil || strings.TrimSpace(string(buf[:n])) == left.ep.IPv4.String() {
					return err == nil
				}
			}
		})
	}
}

// serviceChurn checks that connections to one backend are not affected by changes of
// another, and that connections to a backend end when it is removed, but not when it only
// stops accepting new ones.
func serviceChurn(t *testing.T, d *Driver, client, server, other container) {
	vip := netip.AddrPortFrom(vip4, 80)
	open := func(provider container) net.Conn {
		t.Helper()
		var found net.Conn
		eventually.True(t, "a connection to the provider", func() bool {
			conn, err := dial(t, client, "tcp", vip)
			if err != nil {
				return false
			}
			if name, err := ask(conn, patience); err != nil || name != provider.ep.IPv4.String() {
				conn.Close()
				return false
			}
			found = conn
			return true
		})
		t.Cleanup(func() { found.Close() })
		return found
	}
	d.Apply(webOf(server, other))
	ready(t, d)
	var steady []net.Conn
	for range 5 {
		steady = append(steady, open(server))
	}
	for range 10 {
		for _, s := range []drivers.Service{webOf(server), webOf(other, server)} {
			d.Apply(s)
			ready(t, d)
			for _, conn := range steady {
				if name, err := ask(conn, patience); err != nil || name != server.ep.IPv4.String() {
					t.Fatalf("a connection to %s broke when another provider came or went: %s, %v", server.ep.IPv4, name, err)
				}
			}
		}
	}
	ending := open(other)
	draining := webOf(server, other)
	for i := range draining.Ports {
		for j := range draining.Ports[i].Providers {
			p := &draining.Ports[i].Providers[j]
			p.Draining = p.Addr.Addr() == other.ep.IPv4 || p.Addr.Addr() == other.ep.IPv6
		}
	}
	d.Apply(draining)
	ready(t, d)
	eventually.True(t, "new connections avoid the draining provider", func() bool { // new ones use others
		for range 20 {
			if name, err := who(t, client, "tcp", vip); err != nil || name != server.ep.IPv4.String() {
				return false
			}
		}
		return true
	})
	if name, err := ask(ending, patience); err != nil || name != other.ep.IPv4.String() {
		t.Fatalf("a connection to a provider that takes no more broke: %s, %v", name, err)
	}
	d.Apply(webOf(server))
	ready(t, d)
	eventually.True(t, "the connection to the removed provider ends", func() bool {
		_, err := ask(ending, patience)
		return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
	})
	for _, conn := range steady {
		if name, err := ask(conn, patience); err != nil || name != server.ep.IPv4.String() {
			t.Fatalf("a connection broke with another provider: %s, %v", name, err)
		}
	}
}
