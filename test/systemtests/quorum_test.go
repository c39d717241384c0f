package systemtests

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// inUse is how many addresses of network net are handed out.
func (c cluster) inUse() (int, error) {
	out, err := c.NetctlOutput(c.t.Context(), "net", "inspect", "net")
	if err != nil {
		return 0, err
	}
	var net struct {
		Oper struct {
			AllocatedAddressesCount int `json:"allocatedAddressesCount"`
			NumEndpoints            int `json:"numEndpoints"`
		}
	}
	if err := json.Unmarshal([]byte(out), &net); err != nil {
		return 0, err
	}
	if net.Oper.AllocatedAddressesCount != net.Oper.NumEndpoints {
		return 0, fmt.Errorf("%d addresses are in use by %d endpoints", net.Oper.AllocatedAddressesCount, net.Oper.NumEndpoints)
	}
	return net.Oper.AllocatedAddressesCount, nil
}

// uses waits until n addresses are in use: what a failed attempt left is taken back
// later.
func (c cluster) uses(n int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d addresses in use", n), func() error {
		got, err := c.inUse()
		if err == nil && got != n {
			err = fmt.Errorf("%d addresses are in use", got)
		}
		return err
	})
}

// TestLeaderKilledWhileContainersCome: containers that are attached while the leader is
// killed get their addresses, each its own, and none is lost.
func TestLeaderKilledWhileContainersCome(t *testing.T) {
	const containers, atOnce = 50, 6
	c := up(t, lab.Config{Hosts: 3, Masters: 3})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	got := make([]lab.Container, containers)
	some := make(chan struct{})
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range containers {
		g.Go(func() error {
			a := lab.Attachment{Host: lab.HostName(1 + i%3), Name: fmt.Sprintf("c%d", i), Network: "net"}
			var err error
			for deadline := time.Now().Add(eventually.Scaled(time.Minute)); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
				if got[i], err = c.Attach(t.Context(), a); err == nil {
					if i == 2*atOnce {
						close(some)
					}
					return nil
				}
			}
			return err
		})
		if i == 3*atOnce {
			<-some
			c.restart(c.leader("host1"), "netmaster", syscall.SIGKILL)
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, one := range got {
		if other := owner[one.IPv4]; other != "" {
			t.Errorf("%s and %s both have address %s", one.Name, other, one.IPv4)
		}
		owner[one.IPv4] = one.Name
	}
	c.uses(containers)
	c.reaches("c0", got[containers-1].IPv4)
	for _, one := range got {
		g.Go(func() error { return c.Detach(t.Context(), one.Name) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	c.uses(0)
}

// TestStoreWithoutQuorum: of three members of the store one goes, then another. What
// runs goes on; with a majority back the rest works as before, and nobody had to be
// restarted for it.
func TestStoreWithoutQuorum(t *testing.T) {
	c := up(t, lab.Config{Hosts: 3, Masters: 3})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	a, b := c.attach("host1", "a", "net"), c.attach("host2", "b", "net")
	c.reaches("a", b.IPv4)
	noneLost := c.watch("a", b.IPv4)
	stop := func(host string) {
		t.Helper()
		h, err := c.Host(host)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.StopDaemon(t.Context(), "netmaster", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	start := func(host string) {
		t.Helper()
		h, err := c.Host(host)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.StartDaemon(t.Context(), "netmaster"); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name, subnet string) {
		t.Helper()
		c.eventually("create network "+name, func() error {
			_, err := c.NetctlOutput(t.Context(), "net", "create", name, "--subnet="+subnet)
			return err
		})
	}
	stop("host2")
	create("two", "30.1.1.0/24")
	stop("host3")
	if out, err := c.NetctlOutput(t.Context(), "net", "create", "none", "--subnet=40.1.1.0/24"); err == nil {
		t.Errorf("a network was created without a majority: %s", out)
	}
	noneLost()
	c.reaches("b", a.IPv4)
	start("host2")
	create("again", "50.1.1.0/24")
	c.eventually("attach a container", func() error {
		_, err := c.Attach(t.Context(), lab.Attachment{Host: "host1", Name: "later", Network: "net"})
		return err
	})
	start("host3")
	c.reaches("later", b.IPv4)
}
