package systemtests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/tlsport"
)

// home is where netctl of a host keeps its login in these tests: not in the machine's own.
const home = "HOME=/var/lib/contiv/home"

// load has netctl create, list and delete networks, over and over, from one host. Its arguments can be
// exchanged; end holds that nothing has failed.
type load struct {
	c    cluster
	args atomic.Pointer[[]string]
	done atomic.Int64
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (c cluster) load(host string, args ...string) *load {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	l := &load{c: c, stop: cancel}
	l.args.Store(&args)
	l.wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("load%d", i)
			for _, command := range [][]string{{"net", "create", name, "--subnet=60.1.1.0/24"}, {"net", "ls", "-q"}, {"net", "rm", name}} {
				// Not ctx: a command that is cut off would look like one that fails.
				line := append(append([]string{"env", home, "netctl"}, *l.args.Load()...), command...)
				if out, err := c.Output(context.WithoutCancel(ctx), host, line...); err != nil {
					c.t.Errorf("%s: %v\n%s", strings.Join(line, " "), err, out)
				}
				l.done.Add(1)
			}
		}
	})
	c.t.Cleanup(func() { cancel(); l.wg.Wait() })
	return l
}

func (l *load) end() {
	l.c.t.Helper()
	l.stop()
	l.wg.Wait()
	if n := l.done.Load(); n < 10 {
		l.c.t.Errorf("only %d requests were made", n)
	}
}

// again restarts a daemon of a host with more flags.
func (c cluster) again(host, daemon string, flags ...string) {
	c.t.Helper()
	h, err := c.Host(host)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := h.StopDaemon(c.t.Context(), daemon, syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := h.StartDaemon(c.t.Context(), daemon, flags...); err != nil {
		c.t.Fatal(err)
	}
}

// TestFromOpenToClosed: a cluster goes from off through accept to require, as docs/security.md
// says, and neither a packet nor a request is lost.
func TestFromOpenToClosed(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	c.attach("host1", "a", "net")
	b := c.attach("host2", "b", "net")
	c.reaches("a", b.IPv4)
	noneLost := c.watch("a", b.IPv4)
	master := lab.ControlIP(1).String() + ":9999"
	l := c.load("host2", "--netmaster", "http://"+master)

	c.again("host1", "netmaster", "--tls", string(tlsport.Accept))
	c.run("host2", "umask 077; mkdir -p /etc/contiv; cat >/etc/contiv/join-token <<END\n"+c.netctlOn("host1", "host", "token", "create")+"END")
	for _, h := range c.Hosts() {
		c.again(h.Name, "netplugin", "--tls", string(tlsport.Accept), "--netmaster", "https://"+master)
	}
	c.attach("host2", "late", "net")
	if out := c.netctlOn("host1", "security", "status"); !strings.Contains(out, lab.ControlIP(2).String()) {
		t.Errorf("the client without TLS is not in the status:\n%s", out)
	}
	c.logIn("host2")
	secure := []string{"--netmaster", "https://" + master, "--ca", "/etc/contiv/ca.pem"}
	l.args.Store(&secure)
	for _, h := range c.Hosts() {
		c.again(h.Name, "netplugin", "--tls", string(tlsport.Require), "--netmaster", "https://"+master)
	}
	c.again("host1", "netmaster", "--tls", string(tlsport.Require))
	last := c.attach("host2", "last", "net")
	c.reaches("a", last.IPv4)
	l.end()
	noneLost()
	if out, err := c.Output(t.Context(), "host2", "netctl", "--netmaster", "http://"+master, "net", "ls"); err == nil || !strings.Contains(err.Error(), "use https://") {
		t.Errorf("without TLS: %v\n%s", err, out)
	}
}

// netctlOn runs netctl as root of a host.
func (c cluster) netctlOn(host string, args ...string) string {
	c.t.Helper()
	out, err := c.Output(c.t.Context(), host, append([]string{"netctl", "--netmaster", "unix:///run/contiv/netmaster.sock"}, args...)...)
	if err != nil {
		c.t.Fatalf("netctl %s on %s: %v\n%s", strings.Join(args, " "), host, err, out)
	}
	return out + "\n"
}

// logIn has netctl of a host, with home, logged in as admin, and puts the cluster's authority
// into /etc/contiv/ca.pem.
func (c cluster) logIn(host string) {
	c.t.Helper()
	var password []byte
	c.eventually("one netmaster has made the first password", func() (err error) {
		for _, m := range c.Masters() {
			password, err = os.ReadFile(filepath.Join(m.File(lab.MasterTLSDir), "initial-admin-password"))
			if err == nil {
				return nil
			}
		}
		return err
	})
	roots, err := os.ReadFile(filepath.Join(c.Masters()[0].File(lab.MasterTLSDir), "roots.pem"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.run(host, "cat >/etc/contiv/ca.pem <<END\n"+string(roots)+"END")
	url := "https://" + lab.ControlIP(1).String() + ":9999"
	c.run(host, "mkdir -p /var/lib/contiv/home; env "+home+" netctl --netmaster "+url+" --ca /etc/contiv/ca.pem login --user admin --password-stdin <<END\n"+string(password)+"END")
}

// TestSecuredMasters: three netmasters with an embedded store, all closed: the leader is killed
// and the certificate authority replaced, while containers talk and networks are made.
func TestSecuredMasters(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3, TLS: tlsport.Require})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	c.attach("host1", "a", "net")
	b := c.attach("host3", "b", "net")
	c.reaches("a", b.IPv4)
	noneLost := c.watch("a", b.IPv4)
	c.logIn("host1")
	urls := c.masterURLs()
	l := c.load("host1", "--netmaster", urls, "--ca", "/etc/contiv/ca.pem")

	former := c.asHost("host1").Leaf().Issuer.String()
	c.netctlOn("host1", "ca", "rotate")
	for _, h := range c.Hosts() {
		c.eventually(h.Name+" has a certificate of the new authority", func() error {
			if now := c.asHost(h.Name).Leaf().Issuer.String(); now == former {
				return fmt.Errorf("it is of %s", now)
			}
			return nil
		})
	}
	if out := c.netctlOn("host1", "ca", "show"); !strings.Contains(out, "netctl ca rotate --finish") {
		t.Errorf("nobody says how the rotation ends:\n%s", out)
	}
	c.restart(c.securedLeader("host1"), "netmaster", syscall.SIGKILL)
	for _, h := range c.Hosts() {
		c.restart(h.Name, "netmaster", syscall.SIGTERM)
	}
	c.netctlOn("host1", "ca", "rotate", "--finish")
	for _, h := range c.Hosts() {
		c.restart(h.Name, "netmaster", syscall.SIGTERM)
	}
	late := c.attach("host2", "late", "net")
	c.reaches("a", late.IPv4)
	l.end()
	noneLost()
}

// masterURLs are those of all netmasters, separated by commas.
func (c cluster) masterURLs() string {
	var urls []string
	for _, h := range c.Masters() {
		urls = append(urls, "https://"+h.ControlIP()+":9999")
	}
	return strings.Join(urls, ",")
}

// securedLeader is the host of the netmaster that leads, by what root is told on another one.
func (c cluster) securedLeader(from string) string {
	c.t.Helper()
	out := c.run(from, "curl -s --unix-socket /run/contiv/netmaster.sock http://netmaster/info")
	for _, h := range c.Masters() {
		if strings.Contains(out, `"leader-ip":"`+h.ControlIP()+`:9999"`) {
			return h.Name
		}
	}
	c.t.Fatalf("nobody leads: %s", out)
	return ""
}

// TestShortCertificates: certificates that live for seconds are renewed in time, by netmaster
// and agents, and neither traffic nor requests notice. With CONTIV_LONG they live for two
// minutes, for twenty.
func TestShortCertificates(t *testing.T) {
	t.Parallel() // it mostly waits
	ttl, rounds := "20s", 1
	if os.Getenv("CONTIV_LONG") != "" {
		ttl, rounds = "2m", 4
	}
	const renewals = 4 // in a round; each after two thirds of the time
	c := up(t, lab.Config{Hosts: 2, TLS: tlsport.Require, MasterFlags: []string{"--tls-cert-ttl", ttl}})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	c.attach("host1", "a", "net")
	b := c.attach("host2", "b", "net")
	c.reaches("a", b.IPv4)
	c.logIn("host2")
	l := c.load("host2", "--netmaster", "https://"+lab.ControlIP(1).String()+":9999", "--ca", "/etc/contiv/ca.pem")
	for range rounds {
		noneLost := c.watch("a", b.IPv4)
		for i := range renewals {
			before := c.asHost("host2").Leaf().SerialNumber
			c.eventually(fmt.Sprintf("renewal %d", i+1), func() error {
				if c.asHost("host2").Leaf().SerialNumber.Cmp(before) == 0 {
					return errors.New("it has the same certificate")
				}
				return nil
			})
		}
		noneLost()
	}
	late := c.attach("host2", "late", "net")
	c.reaches("a", late.IPv4)
	l.end()
	if out := c.netctlOn("host1", "host", "ls"); strings.Contains(out, "expired") {
		t.Errorf("certificates have expired:\n%s", out)
	}
}
