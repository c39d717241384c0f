package systemtests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// leader asks the netmaster of a host who leads; "" while nobody does.
func (c cluster) leader(from string) string {
	c.t.Helper()
	h, err := c.Host(from)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := h.HTTP().Get("http://127.0.0.1:9999/info")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var info struct {
		Leader string `json:"leader-ip"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&info); err != nil {
		return "" // there is an error text instead
	}
	for _, h := range c.Hosts() {
		if info.Leader == h.ControlIP()+":9999" {
			return h.Name
		}
	}
	return ""
}

// eventually tries until it succeeds.
func (c cluster) eventually(what string, try func() error) {
	c.t.Helper()
	eventually.Succeeds(c.t, what, try)
}

// other is a host that is not the one named.
func other(hosts []*lab.Host, name string) *lab.Host {
	for _, h := range hosts {
		if h.Name != name {
			return h
		}
	}
	return nil
}

// events follows what the netmaster of a host tells of networks, on one stream; the
// returned function waits for an event that says all of something.
func (c cluster) events(h *lab.Host) func(says ...string) {
	c.t.Helper()
	resp, err := h.HTTP().Get("http://127.0.0.1:9999/api/v1/watch?kind=network")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	in := bufio.NewReader(resp.Body)
	if line, err := in.ReadString('\n'); line != "event: reset\n" {
		c.t.Fatalf("events of %s begin with %s, %q, %v", h.Name, resp.Status, line, err)
	}
	return func(says ...string) {
		c.t.Helper()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				c.t.Fatalf("events of %s ended before %q: %v", h.Name, says, err)
			}
			if !slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(line, s) }) {
				return
			}
		}
	}
}

// TestThreeMasters: any one of three may go, by itself or with its host's network.
func TestThreeMasters(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	a, b := c.attach("host1", "a", "net"), c.attach("host2", "b", "net")
	c.reaches("a", b.IPv4)
	leader := c.leader("host1")
	if leader == "" {
		t.Fatal("nobody leads")
	}
	t.Run("the leader stops and comes back", func(t *testing.T) {
		c := cluster{c.Lab, t}
		h, err := c.Host(leader)
		if err != nil {
			t.Fatal(err)
		}
		told := c.events(other(c.Hosts(), leader))
		if err := h.StopDaemon(t.Context(), "netmaster", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.netctl("net", "create", "second", "--subnet=30.1.1.0/24")
		told(`"event":"added"`, `"key":"default:second"`)
		c.attach("host3", "second", "second")
		if err := h.StartDaemon(t.Context(), "netmaster"); err != nil {
			t.Fatal(err)
		}
		if out := c.run(leader, "netctl --netmaster http://127.0.0.1:9999 net ls -q"); !strings.Contains(out, "second") {
			t.Errorf("networks seen through the one that came back: %q", out)
		}
	})
	t.Run("the leader is killed", func(t *testing.T) {
		c := cluster{c.Lab, t}
		c.restart(c.leader("host1"), "netmaster", syscall.SIGKILL)
		c.eventually("create a network", func() error {
			_, err := c.NetctlOutput(t.Context(), "net", "create", "third", "--subnet=40.1.1.0/24")
			return err
		})
	})
	t.Run("the leader's control network is cut", func(t *testing.T) {
		c := cluster{c.Lab, t}
		leader := c.leader("host1")
		other := "host1"
		if leader == other {
			other = "host2"
		}
		noneLost := c.watch("a", b.IPv4)
		if err := c.Partition(t.Context(), leader, "control"); err != nil {
			t.Fatal(err)
		}
		c.eventually("create a network at the others", func() error {
			_, err := c.Output(t.Context(), other, "netctl", "--netmaster", "http://127.0.0.1:9999", "net", "create", "fourth", "--subnet=50.1.1.0/24")
			return err
		})
		if err := c.Heal(t.Context(), leader, "control"); err != nil {
			t.Fatal(err)
		}
		c.ready(leader, "netmaster")
		c.eventually("see it where the leader was", func() error {
			out, err := c.Output(t.Context(), leader, "netctl", "--netmaster", "http://127.0.0.1:9999", "net", "ls", "-q")
			if err == nil && !strings.Contains(out, "fourth") {
				err = fmt.Errorf("networks are %q", out)
			}
			return err
		})
		noneLost()
		c.reaches("b", a.IPv4)
	})
}

// TestExternalStore: the store is an etcd, or Consul, of its own, which may be down for a
// while.
func TestExternalStore(t *testing.T) {
	for _, store := range []string{lab.StoreEtcd, lab.StoreConsul} {
		t.Run(store, func(t *testing.T) { testExternalStore(t, store) })
	}
}

func testExternalStore(t *testing.T, store string) {
	c := up(t, lab.Config{Hosts: 2, Store: store})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	c.attach("host1", "a", "net")
	b := c.attach("host2", "b", "net")
	c.reaches("a", b.IPv4)
	noneLost := c.watch("a", b.IPv4)
	h := c.Hosts()[0]
	if err := h.StopDaemon(t.Context(), store, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if out, err := c.NetctlOutput(t.Context(), "net", "create", "none", "--subnet=30.1.1.0/24"); err == nil {
		t.Errorf("a network was created without a store: %s", out)
	}
	if err := h.StartDaemon(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	c.eventually("create a network", func() error {
		_, err := c.NetctlOutput(t.Context(), "net", "create", "later", "--subnet=40.1.1.0/24")
		return err
	})
	// Before the next link is made: the userspace datapath forgets its routes whenever
	// one appears on the host, and may drop the packet that comes just then.
	noneLost()
	c.eventually("attach a container", func() error {
		_, err := c.Attach(t.Context(), lab.Attachment{Host: "host2", Name: "later", Network: "later"})
		return err
	})
	c.ready("host2", "netplugin")
}
