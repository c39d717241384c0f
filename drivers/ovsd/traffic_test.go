package ovsd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/appctl"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// Real packets between two containers of this host, in both modes of the VXLAN bridge, with a
// log of connections and without: it changes nothing for them.
func TestInsideTraffic(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	for _, c := range []struct {
		name, mode string
		log        ofnet.FlowLog
	}{
		{"routing", "routing", ofnet.LogOff},
		{"bridge", "bridge", ofnet.LogOff},
		{"routing with log", "routing", ofnet.LogAll},
		{"bridge with log", "bridge", ofnet.LogPoliced},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(dir)
			cfg.FlowLog = c.log
			d, _ := runDriver(t, cfg) // ends after the containers
			global := contract.Global
			global.FwdMode = c.mode
			d.Apply(global)
			d.Apply(contract.Network)
			d.Synced(drivers.SourceStore)
			client, server := newContainer(t, d, 1), newContainer(t, d, 2)
			t.Run("policy ends a connection, and lets it go on", func(t *testing.T) { policyTraffic(t, d, client, server) })
			t.Run("endpoint policies end a connection, and let it continue", func(t *testing.T) { endpointPolicyTraffic(t, d, client, server) })
			t.Run("another address is not let through", func(t *testing.T) { spoofedTraffic(t, client, server) })
			t.Run("services", func(t *testing.T) { serviceTraffic(t, d, client, server) })
			t.Run("trace", func(t *testing.T) { tracedTraffic(t, d, client, server) })
			t.Run("rate", func(t *testing.T) { limitedTraffic(t, d, client, server) })
		})
	}
}

// container is a network namespace with an attached interface.
type container struct {
	netns string
	ep    drivers.Endpoint
}

func newContainer(t *testing.T, d *Driver, i int) container {
	t.Helper()
	return newContainerIn(t, d, i, contract.Network)
}

func newContainerIn(t *testing.T, d *Driver, i int, n drivers.Network) container {
	t.Helper()
	c := container{netns: netxtest.Namespace(t), ep: contract.Endpoint(i)}
	c.ep.Group, c.ep.Network = uint32(i), n
	c.ep.IPv6 = netip.MustParseAddr(fmt.Sprintf("2001:db8:1::%d", i))
	if n.Gateway6.IsValid() {
		a := n.Gateway6.As16()
		a[15] = byte(i)
		c.ep.IPv6 = netip.AddrFrom16(a)
	}
	c.ep.ID = strings.Replace(c.ep.ID, contract.Network.ID, n.ID, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d.Apply(c.ep)
	if _, err := d.Attach(ctx, drivers.Attachment{EndpointID: c.ep.ID, ContainerID: "c", IfName: "eth0", Netns: c.netns}, ofnet.VXLAN, n.Tag); err != nil {
		t.Fatal(err)
	}
	if err := d.Realised(ctx, c.ep.ID); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Detach(context.WithoutCancel(ctx), c.ep.ID); err != nil {
			t.Error(err)
		}
		d.Delete(drivers.KindEndpoint, c.ep.ID)
	})
	c.inside(t, func() error {
		link, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		mac := net.HardwareAddr(c.ep.MAC[:])
		return errors.Join(netlink.LinkSetHardwareAddr(link, mac), netlink.LinkSetUp(link), c.addAddr(c.ep.IPv4), c.addAddr(c.ep.IPv6))
	})
	return c
}

func (c container) addAddr(a netip.Addr) error {
	link, err := netlinksafe.LinkByName("eth0")
	if err != nil {
		return err
	}
	mask := net.CIDRMask(24, 32)
	if a.Is6() {
		mask = net.CIDRMask(64, 128)
	}
	return netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: mask}, Flags: unix.IFA_F_NODAD})
}

// inside runs f in the container's network namespace, on a thread of its own.
func (c container) inside(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		handle, err := ns.GetNS(c.netns)
		if err == nil {
			defer handle.Close()
			err = handle.Set()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// connect opens a TCP connection to a container that echoes.
func connect(t *testing.T, from, to container) net.Conn {
	t.Helper()
	var listener net.Listener
	to.inside(t, func() (err error) {
		listener, err = net.Listen("tcp", to.ep.IPv4.String()+":80")
		return err
	})
	serveStream(t, listener, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	var conn net.Conn
	from.inside(t, func() (err error) {
		conn, err = net.DialTimeout("tcp", to.ep.IPv4.String()+":80", patience)
		return err
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// exchanged reports whether a byte is echoed in time.
func exchanged(t *testing.T, conn net.Conn, patience time.Duration) bool {
	t.Helper()
	b := []byte{1}
	err := conn.SetDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = conn.Write(b)
	}
	if err == nil {
		_, err = io.ReadFull(conn, b)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

func policyTraffic(t *testing.T, d *Driver, client, server container) {
	const brief, long = 200 * time.Millisecond, patience
	conn := connect(t, client, server)
	if !exchanged(t, conn, long) {
		t.Fatal("no traffic without rules")
	}
	rule := drivers.Rule{Tenant: "default", Rule: ofnet.Rule{ID: "default:other", Priority: 1, SrcGroup: client.ep.Group, Proto: 17, Deny: true}}
	d.Apply(rule)
	ready(t, d)
	renewed(t) // the connection is tracked from here on; a rule with flags would not match it later
	if !exchanged(t, conn, long) {
		t.Error("a connection that no rule denies ended")
	}
	rule.ID, rule.Priority, rule.Proto, rule.DstGroup, rule.Flags = "default:tcp", 2, 6, server.ep.Group, "syn,!ack"
	d.Apply(rule)
	ready(t, d)
	// The datapath has its own copy of flows, and updates it a moment later.
	eventually.True(t, "the denied connection ends", func() bool { return !exchanged(t, conn, brief) })
	d.Delete(drivers.KindRule, rule.ID)
	ready(t, d)
	if !exchanged(t, conn, long) {
		t.Error("a connection that is allowed again does not go on")
	}
	rule.Reject = true
	d.Apply(rule)
	ready(t, d)
	refused := func(err error) bool {
		return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
	}
	conn.Close()
	for _, a := range []netip.Addr{server.ep.IPv4, server.ep.IPv6} {
		eventually.True(t, "new connections are refused", func() bool { _, err := dial(t, client, "tcp", netip.AddrPortFrom(a, 80)); return refused(err) })
	}
	rule.Proto, rule.Flags = 17, ""
	d.Apply(rule)
	ready(t, d)
	eventually.True(t, "IPv4 datagrams are rejected", func() bool { // RFC 1812: administratively prohibited
		_, err := who(t, client, "udp", netip.AddrPortFrom(server.ep.IPv4, 9))
		return errors.Is(err, unix.EHOSTUNREACH)
	})
	eventually.True(t, "IPv6 datagrams are rejected", func() bool {
		_, err := who(t, client, "udp", netip.AddrPortFrom(server.ep.IPv6, 9))
		return errors.Is(err, unix.EACCES)
	})
	eventually.True(t, "the rules have counted", func() bool { // the switch updates its counters now and then
		hits, err := d.RuleHits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return hits[rule.ID].Packets > 0 && hits[rule.ID].Bytes > 0
	})
	d.Delete(drivers.KindRule, rule.ID)
	d.Delete(drivers.KindRule, "default:other")
	ready(t, d)
	eventually.True(t, "connections are allowed again", func() bool {
		var err error
		conn, err = dial(t, client, "tcp", netip.AddrPortFrom(server.ep.IPv4, 80))
		return err == nil
	})
	defer conn.Close()
	if !exchanged(t, conn, long) {
		t.Error("no traffic after all rules are gone")
	}
}

// renewed waits until the datapath has no copies of earlier flows.
func renewed(t *testing.T) {
	t.Helper()
	dir, _ := inside()
	socket := dir + "/ovs-vswitchd.ctl"
	for range 2 { // the round under way may have begun before
		if _, err := appctl.Call(t.Context(), socket, "revalidator/wait"); err != nil {
			t.Fatal(err)
		}
	}
}

func spoofedTraffic(t *testing.T, client, server container) {
	const foreign = "10.1.1.77"
	client.inside(t, func() error { return client.addAddr(netip.MustParseAddr(foreign)) })
	got := receive(t, server)
	// Packets of one port stay in order: if the first were let through, it would arrive
	// first.
	first := until(t, got, func() {
		for _, source := range []string{foreign, client.ep.IPv4.String()} {
			send(t, client, source, server, 1, 1)
		}
	}, func(datagram) bool { return true })
	if first.addr.Addr() != client.ep.IPv4 {
		t.Errorf("a packet from %s arrived", first.addr)
	}
}

type datagram struct {
	addr netip.AddrPort
	size int
}

// receive returns what a container receives by UDP, until the test ends.
func receive(t *testing.T, c container) <-chan datagram {
	t.Helper()
	var conn *net.UDPConn
	c.inside(t, func() (err error) {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: c.ep.IPv4.AsSlice(), Port: 9999})
		return err
	})
	got := make(chan datagram, 1<<16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			got <- datagram{from, n}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return got
}

// until sends repeatedly, as datagrams may be lost, until the expected one arrives.
func until(t *testing.T, got <-chan datagram, again func(), ok func(datagram) bool) datagram {
	t.Helper()
	tick, end := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for again(); ; {
		select {
		case g := <-got:
			if ok(g) {
				return g
			}
		case <-tick.C:
			again()
		case <-end:
			t.Fatal("nothing arrives")
		}
	}
}

// send sends n datagrams of a size.
func send(t *testing.T, from container, source string, to container, n, size int) {
	t.Helper()
	from.inside(t, func() error {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(source)}, &net.UDPAddr{IP: to.ep.IPv4.AsSlice(), Port: 9999})
		if err != nil {
			return err
		}
		defer conn.Close()
		for range n {
			if _, err := conn.Write(make([]byte, size)); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
				return fmt.Errorf("send to %s: %w", to.ep.IPv4, err)
			}
		}
		return nil
	})
}

// limitedTraffic offers far more than a meter lets through. The exact amount depends on the
// machine; a slower one only makes it smaller.
func limitedTraffic(t *testing.T, d *Driver, client, server container) {
	const rate, burst, size = 2000, 600, 1000 // kbit/s, kbit, bytes
	got := receive(t, server)
	limited := client.ep
	limited.QoS = ofnet.QoS{Rate: rate, Burst: burst}
	one := func(size int) func() { return func() { send(t, client, client.ep.IPv4.String(), server, 1, size) } }
	until(t, got, one(1), func(datagram) bool { return true }) // resolves addresses
	d.Apply(limited)
	ready(t, d)
	renewed(t) // do not count what still bypasses the meter
	begin := time.Now()
	for time.Since(begin) < time.Second {
		send(t, client, client.ep.IPv4.String(), server, 20, size)
		time.Sleep(5 * time.Millisecond)
	}
	d.Apply(client.ep)
	ready(t, d)
	elapsed := time.Since(begin).Seconds()
	kbit := 0.0
	until(t, got, one(7), func(g datagram) bool {
		kbit += float64(g.size+42) * 8 / 1000 // with the headers of Ethernet, IPv4 and UDP
		return g.size == 7
	})
	if most := 1.15*rate*elapsed + burst; kbit > most || kbit < rate/20 {
		t.Errorf("%.0f kbit in %.2f s, expected at most %.0f and a part of it", kbit, elapsed, most)
	}
	t.Logf("%.0f kbit in %.2f s through a meter of %d kbit/s", kbit, elapsed, rate)
}
