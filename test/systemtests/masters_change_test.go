package systemtests

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/tlsport"
)

// TestMastersFromOpenToClosed: three netmasters with an embedded store go from off through accept
// to require, one by one. The leader is killed in the middle of each step, and neither a packet
// nor a request is lost.
func TestMastersFromOpenToClosed(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	c.attach("host1", "a", "net")
	b := c.attach("host3", "b", "net")
	c.reaches("a", b.IPv4)
	noneLost := c.watch("a", b.IPv4)
	urls := c.masterURLs()
	l := c.load("host1", "--netmaster", strings.ReplaceAll(urls, "https:", "http:"))
	for _, h := range c.Hosts() {
		c.run(h.Name, "umask 077; mkdir -p /etc/contiv; echo "+strings.Repeat("0123456789abcdef", 4)+" >/etc/contiv/cluster-secret")
	}
	flags := func(mode tlsport.Mode) []string {
		return []string{"--tls", string(mode), "--cluster-secret-file", "/etc/contiv/cluster-secret", "--join", urls}
	}
	// step changes all netmasters, after the first of them with the leader killed.
	step := func(mode tlsport.Mode) {
		for i, h := range c.Masters() {
			c.again(h.Name, "netmaster", flags(mode)...)
			if i > 0 {
				continue
			}
			killed := c.awaitLeader(h.Name)
			host, err := c.Host(killed)
			if err != nil {
				t.Fatal(err)
			}
			if err := host.StopDaemon(t.Context(), "netmaster", syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			var after []string
			switch {
			case killed == h.Name:
				after = flags(mode)
			case mode == tlsport.Require: // its turn comes
				after = flags(tlsport.Accept)
			}
			if err := host.StartDaemon(t.Context(), "netmaster", after...); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(tlsport.Accept)
	for _, h := range c.Hosts() {
		c.again(h.Name, "netplugin", "--tls", string(tlsport.Accept), "--netmaster", urls)
	}
	c.attach("host2", "late", "net")
	c.logIn("host1")
	secure := []string{"--netmaster", urls, "--ca", "/etc/contiv/ca.pem"}
	l.args.Store(&secure)
	for _, h := range c.Hosts() {
		c.again(h.Name, "netplugin", "--tls", string(tlsport.Require), "--netmaster", urls)
	}
	c.eventually("all members talk to each other by TLS", func() error {
		out, err := c.Output(t.Context(), "host1", "curl", "-sk", "--cert", lab.MasterTLSDir+"/identity.pem", "https://"+lab.ControlIP(1).String()+":2380/members")
		if err == nil && (strings.Count(out, "https://") < 3 || strings.Contains(out, "http://"+lab.ControlIP(1).String()+":2380")) {
			err = errors.New(out)
		}
		return err
	})
	step(tlsport.Require)
	last := c.attach("host2", "last", "net")
	c.reaches("a", last.IPv4)
	l.end()
	noneLost()
}

// awaitLeader is securedLeader while the leader may be changing.
func (c cluster) awaitLeader(from string) (leader string) {
	c.t.Helper()
	c.eventually("a leader", func() error {
		out, err := c.Output(c.t.Context(), from, "curl", "-s", "--unix-socket", "/run/contiv/netmaster.sock", "http://netmaster/info")
		for _, h := range c.Masters() {
			if strings.Contains(out, `"leader-ip":"`+h.ControlIP()+`:9999"`) {
				leader = h.Name
				return err
			}
		}
		return errors.Join(errors.New("nobody leads: "+out), err)
	})
	return leader
}
