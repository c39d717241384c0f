package ovsd

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
)

// oracle answers queries for "agent" with the tenant's name, and passes the rest on.
type oracle struct{}

func (oracle) Query(q drivers.DNSQuery) {
	if q.ToAgent {
		q.Answer([]byte(q.Tenant + " asks " + string(q.Message)))
		return
	}
	q.Pass()
}

func (oracle) Stream(_ context.Context, tenant string, c net.Conn) {
	defer c.Close()
	_, _ = io.WriteString(c, tenant)
}

// Queries by UDP and TCP, in both modes of the VXLAN bridge, from two tenants with the same
// addresses, before and after a restart.
func TestInsideDNS(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	cfg := testConfig(dir)
	cfg.NameServer = oracle{}
	blue := contract.Network
	blue.Gateway6 = netip.MustParseAddr("2001:db8:1::fe")
	red := blue
	red.ID, red.Tenant, red.VNI, red.Tag = "net1.red", "red", 10002, 2
	for mode, servers := range map[string][]netip.Addr{
		"routing": {blue.Gateway4, blue.Gateway6, ofnet.LinkRouter4},
		"bridge":  {ofnet.LinkRouter4},
	} {
		t.Run(mode, func(t *testing.T) {
			for _, start := range []string{"first", "again"} {
				t.Run(start, func(t *testing.T) {
					d, _ := runDriver(t, cfg)
					global := contract.Global
					global.FwdMode = mode
					d.Apply(global)
					d.Apply(blue)
					d.Apply(red)
					d.Synced(drivers.SourceStore)
					client, other := newContainerIn(t, d, 1, blue), newContainerIn(t, d, 2, blue)
					twin := newContainerIn(t, d, 1, red)
					for _, server := range servers {
						for _, c := range []container{client, twin} {
							c.way(t, server)
							if got, want := askUDP(t, c, server), c.ep.Network.Tenant+" asks x"; got != want {
								t.Errorf("%s by UDP: %q, want %q", server, got, want)
							}
							if got, want := askTCP(t, c, server), c.ep.Network.Tenant; got != want {
								t.Errorf("%s by TCP: %q, want %q", server, got, want)
							}
						}
					}
					passes(t, client, other)
				})
			}
		})
	}
}

// counter is an oracle that counts.
type counter struct {
	oracle
	n atomic.Int64
}

func (c *counter) Query(q drivers.DNSQuery) {
	c.n.Add(1)
	c.oracle.Query(q)
}

// A container that exceeds its rate does not reach the agent with all of its queries. The
// exact number depends on the machine; a slower one only makes it smaller.
func TestInsideDNSRate(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	const rate, offered = 20, 2000
	asked := &counter{}
	cfg := testConfig(dir)
	cfg.NameServer, cfg.DNSRate = asked, rate
	d, _ := runDriver(t, cfg)
	d.Apply(contract.Global)
	d.Apply(contract.Network)
	d.Synced(drivers.SourceStore)
	client, server := newContainer(t, d, 1), contract.Network.Gateway4
	client.way(t, server)
	begin := time.Now()
	if got := askUDP(t, client, server); got != "default asks x" {
		t.Fatalf("answer %q", got)
	}
	var conn net.Conn
	client.inside(t, func() (err error) {
		conn, err = net.Dial("udp", netip.AddrPortFrom(server, 53).String())
		return err
	})
	defer conn.Close()
	for range offered {
		if _, err := conn.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
	}
	if got := askUDP(t, client, server); got != "default asks x" { // after all the others
		t.Fatalf("answer %q", got)
	}
	most := rate + 1.5*rate*time.Since(begin).Seconds()
	if n := float64(asked.n.Load()); n > most {
		t.Errorf("%.0f of %d queries came to the agent, want at most %.0f", n, offered, most)
	}
}

// way adds a route to a server to the container.
func (c container) way(t *testing.T, server netip.Addr) {
	t.Helper()
	c.inside(t, func() error {
		link, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		bits := server.BitLen()
		if server.Is6() { // skip duplicate address detection
			own := &netlink.Addr{IPNet: &net.IPNet{IP: c.ep.IPv6.AsSlice(), Mask: net.CIDRMask(128, 128)}, Flags: 2}
			if err := netlink.AddrReplace(link, own); err != nil {
				return err
			}
		}
		return netlink.RouteReplace(&netlink.Route{
			LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK,
			Dst: &net.IPNet{IP: server.AsSlice(), Mask: net.CIDRMask(bits, bits)},
		})
	})
}

// askUDP asks until there is an answer, as datagrams may be lost.
func askUDP(t *testing.T, c container, server netip.Addr) string {
	t.Helper()
	var conn net.Conn
	c.inside(t, func() (err error) {
		conn, err = net.Dial("udp", netip.AddrPortFrom(server, 53).String())
		return err
	})
	defer conn.Close()
	buf := make([]byte, 100)
	for until := time.Now().Add(patience); time.Now().Before(until); {
		_, err := conn.Write([]byte("x"))
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(buf); err == nil {
			return string(buf[:n])
		}
	}
	return "no answer"
}

func askTCP(t *testing.T, c container, server netip.Addr) string {
	t.Helper()
	var conn net.Conn
	c.inside(t, func() (err error) {
		conn, err = net.DialTimeout("tcp", netip.AddrPortFrom(server, 53).String(), patience)
		return err
	})
	defer conn.Close()
	b, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// passes expects that a query to another container arrives there.
func passes(t *testing.T, from, to container) {
	t.Helper()
	var server net.PacketConn
	to.inside(t, func() (err error) {
		server, err = net.ListenPacket("udp4", to.ep.IPv4.String()+":53")
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 100)
		for {
			n, addr, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo([]byte("container got "+string(buf[:n])), addr)
		}
	}()
	defer func() { server.Close(); <-done }()
	if got := askUDP(t, from, to.ep.IPv4); got != "container got x" {
		t.Errorf("a query to a container: %q", got)
	}
}
