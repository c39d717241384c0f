package systemtests

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"github.com/vishvananda/netns"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// dig asks from a container until there is the answer that is wanted, as the host may
// hear of a change a moment later: the data of the records, sorted.
func (c cluster) dig(from string, want string, args ...string) {
	c.t.Helper()
	got := ""
	for until := time.Now().Add(eventually.Scaled(time.Minute)); time.Now().Before(until); {
		out, err := c.Output(c.t.Context(), from, append([]string{"dig", "+short", "+tries=3", "+time=2"}, args...)...)
		lines := strings.Fields(out)
		slices.Sort(lines)
		if got = strings.Join(lines, " "); got == want && err == nil {
			return
		}
	}
	c.t.Errorf("%s: dig %s: %q, want %q", from, strings.Join(args, " "), got, want)
}

// digStatus asks until the answer has a status.
func (c cluster) digStatus(from string, want string, args ...string) {
	c.t.Helper()
	out := ""
	for until := time.Now().Add(eventually.Scaled(time.Minute)); time.Now().Before(until); {
		out, _ = c.Output(c.t.Context(), from, append([]string{"dig", "+tries=3", "+time=2"}, args...)...) // fails without an answer
		if strings.Contains(out, "status: "+want+",") {
			return
		}
	}
	c.t.Errorf("%s: dig %s: want status %s\n%s", from, strings.Join(args, " "), want, out)
}

// outside answers 192.0.2.1 for what is below example.com.
func outside(w dns.ResponseWriter, req *dns.Msg) {
	m := &dns.Msg{}
	m.SetReply(req)
	if q := req.Question[0]; strings.HasSuffix(q.Name, ".example.com.") && q.Qtype == dns.TypeA {
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(192, 0, 2, 1)}}
	} else {
		m.Rcode = dns.RcodeNameError
	}
	_ = w.WriteMsg(m)
}

// nameServer starts a name server at an address of the network namespace of a path.
func (c cluster) nameServer(path, address string) {
	c.t.Helper()
	var udp net.PacketConn
	var tcp net.Listener
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ns, err := netns.GetFromPath(path)
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err == nil {
			udp, err = net.ListenPacket("udp", address+":53")
		}
		if err == nil {
			tcp, err = net.Listen("tcp", address+":53")
		}
		done <- err
	}()
	if err := <-done; err != nil {
		c.t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: udp, Handler: dns.HandlerFunc(outside)}, {Listener: tcp, Handler: dns.HandlerFunc(outside)}} {
		started, ended := make(chan struct{}), make(chan error)
		s.NotifyStartedFunc = func() { close(started) }
		go func() { ended <- s.ActivateAndServe() }()
		<-started
		c.t.Cleanup(func() {
			if err := errors.Join(s.Shutdown(), <-ended); err != nil {
				c.t.Error(err)
			}
		})
	}
}

// resolver starts a name server on a host, and makes it the host's resolver.
func (c cluster) resolver(name string) {
	c.t.Helper()
	h, err := c.Host(name)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nameServer(fmt.Sprintf("/proc/%d/ns/net", h.PID()), "127.0.0.1")
	c.run(name, "echo nameserver 127.0.0.1 > /run/resolv.conf; mount --bind /run/resolv.conf /etc/resolv.conf")
}

// TestDNS: containers find each other, groups and services by name, each tenant its own;
// the rest is asked of the host's resolvers.
func TestDNS(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, DNS: "on"})
	c.resolver("host1")
	c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
	c.netctl("group", "create", "front", "web")
	c.netctl("service", "create", "vip", "--network", "front", "--preferred-ip", "20.1.1.200", "--selector", "app=x", "--port", "80:80:TCP")
	c.netctl("tenant", "create", "blue")
	c.netctl("net", "create", "front", "--tenant", "blue", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")

	client := c.attach("host1", "client", "front")
	db := c.attach("host2", "db", "front")
	member := func(host, name string) lab.Container {
		m, err := c.Attach(t.Context(), lab.Attachment{Host: host, Name: name, Network: "front", Group: "web"})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	w1, w2 := member("host1", "w1"), member("host2", "w2")
	c.attach("host1", "blue-filler", "blue/front")
	c.attach("host1", "blue-client", "blue/front")
	blueDB := c.attach("host2", "blue-db", "blue/front")
	web := []string{w1.IPv4, w2.IPv4}
	slices.Sort(web)

	const gateway, gateway6, link = "@20.1.1.254", "@2001:db8:1::fe", "@169.254.1.1"
	t.Run("records", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, server := range []string{gateway, gateway6, link, "@" + db.IPv4, "@" + db.IPv6} {
			c.dig("client", db.IPv4, server, "db", "A")
			c.dig("client", db.IPv6, server, "DB", "AAAA")
		}
		c.dig("client", strings.Join(web, " "), gateway, "web")
		c.dig("client", "20.1.1.200", gateway, "vip")
		c.dig("client", db.IPv4, gateway, "db.contiv.local")
		c.dig("client", db.IPv4, gateway, "db.default.contiv.local")
		c.dig("client", "db.default.contiv.local.", gateway, "-x", db.IPv4)
		c.dig("client", "db.default.contiv.local.", gateway, "-x", db.IPv6)
		c.dig("client", db.IPv4, gateway, "db", "ANY", "+notcp")
		c.dig("client", "2001:db8:1::1", gateway, "vip", "AAAA") // the first address that was asked for
		c.digStatus("client", "NOERROR", gateway, "vip", "MX")
		c.digStatus("client", "NXDOMAIN", gateway, "nobody.contiv.local")
	})
	t.Run("by TCP", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, server := range []string{gateway, gateway6, link} {
			c.dig("client", db.IPv4, server, "db", "A", "+tcp")
		}
		c.dig("client", "192.0.2.1", gateway, "www.example.com", "+tcp")
	})
	t.Run("everything else", func(t *testing.T) {
		c := cluster{c.Lab, t}
		for _, from := range []string{"client", "blue-client"} {
			c.dig(from, "192.0.2.1", gateway, "www.example.com")
			c.dig(from, "192.0.2.1", link, "www.example.com")
			c.digStatus(from, "NXDOMAIN", gateway, "nobody")
		}
		c.digStatus("client", "NXDOMAIN", gateway, "blue-db")
	})
	t.Run("tenants with the same names and addresses", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.dig("blue-client", blueDB.IPv4, gateway, "blue-db")
		c.dig("blue-client", blueDB.IPv4, gateway, "blue-db", "+tcp")
		c.digStatus("blue-client", "NXDOMAIN", gateway, "db")
		c.digStatus("blue-client", "NXDOMAIN", gateway, "db.default.contiv.local", "+tcp")
		if blueDB.IPv4 == client.IPv4 || blueDB.IPv4 != w1.IPv4 && blueDB.IPv4 != w2.IPv4 && blueDB.IPv4 != db.IPv4 {
			t.Errorf("blue-db has %s, want an address that a container of the other tenant has", blueDB.IPv4)
		}
	})
	t.Run("a server among the containers", func(t *testing.T) {
		c := cluster{c.Lab, t}
		h, err := c.Host("host2")
		if err != nil {
			t.Fatal(err)
		}
		c.nameServer(fmt.Sprintf("/proc/%d/root%s", h.PID(), db.Netns), db.IPv4)
		c.dig("client", "192.0.2.1", "@"+db.IPv4, "www.example.com")
		c.dig("client", "192.0.2.1", "@"+db.IPv4, "www.example.com", "+tcp")
		c.dig("client", db.IPv4, "@"+db.IPv4, "db")
	})
	t.Run("restart", func(t *testing.T) {
		c := cluster{c.Lab, t}
		ports := c.ports("host1")
		noneGone, noneLost := c.watchFlows("host1"), c.watch("client", db.IPv4)
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			c.restart("host1", "netplugin", signal)
			c.dig("client", db.IPv4, gateway, "db")
			c.dig("client", db.IPv4, gateway, "db", "+tcp")
			c.dig("blue-client", blueDB.IPv4, gateway6, "blue-db", "+tcp")
		}
		noneGone()
		noneLost()
		if d := cmp.Diff(ports, c.ports("host1")); d != "" {
			t.Errorf("ports (-before +after):\n%s", d)
		}
		c.restart("host1", "ovs", syscall.SIGKILL)
		c.dig("client", db.IPv4, gateway, "db")
		c.dig("client", db.IPv4, gateway, "db", "+tcp")
	})
	t.Run("changes", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if err := c.Detach(t.Context(), "w2"); err != nil {
			t.Fatal(err)
		}
		c.dig("client", w1.IPv4, gateway, "web")
		c.netctl("service", "rm", "vip")
		c.digStatus("client", "NXDOMAIN", gateway, "vip")
	})
}

// TestDNSOnVLANs: the same where frames go to a physical network; the name server there
// is at its link-local address.
func TestDNSOnVLANs(t *testing.T) {
	for _, mode := range []string{"bridge", "routing"} {
		t.Run(mode, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 2, NetMode: "vlan", FwdMode: mode, DNS: "on"})
			c.resolver("host1")
			c.netctl("net", "create", "office", "--encap", "vlan", "--pkt-tag", "100", "--subnet=40.1.1.0/24", "--gateway=40.1.1.254")
			c.attach("host1", "client", "office")
			db := c.attach("host2", "db", "office")
			c.run("client", "ip route replace 169.254.1.1/32 dev eth0")
			for _, how := range [][]string{nil, {"+tcp"}} {
				c.dig("client", db.IPv4, append(how, "@169.254.1.1", "db")...)
				c.dig("client", "192.0.2.1", append(how, "@169.254.1.1", "www.example.com")...)
			}
			c.dig("client", db.IPv4, "@"+db.IPv4, "db")
			c.reaches("client", db.IPv4)
		})
	}
}
