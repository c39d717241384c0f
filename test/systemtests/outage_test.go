package systemtests

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

// TestOutage: netmaster and store are down. What runs goes on, also when the agent
// restarts meanwhile; what is asked for is refused with a word, and done afterwards.
func TestOutage(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=10.1.1.0/24", "--gateway=10.1.1.254")
	a := c.attach("host1", "a", "net")
	b := c.attach("host2", "b", "net")
	gone := c.attach("host2", "gone", "net")
	c.reaches("a", b.IPv4)
	host1, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	if err := host1.StopDaemon(t.Context(), "netmaster", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	noneLost := c.watch("a", b.IPv4)

	t.Run("the agent says what it misses", func(t *testing.T) {
		c := cluster{c.Lab, t}
		h, err := c.Host("host2")
		if err != nil {
			t.Fatal(err)
		}
		if err := h.StopDaemon(t.Context(), "netplugin", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(time.Minute))
		defer cancel()
		said := make(chan bool, 1)
		go func() {
			defer cancel()
			for ctx.Err() == nil {
				if out, _ := h.Output(ctx, "curl", "-s", "http://127.0.0.1:9090/healthz"); strings.Contains(out, "waiting for the store") {
					said <- true
					return
				}
			}
			said <- false
		}()
		if err := h.StartDaemon(ctx, "netplugin"); err == nil || !<-said {
			t.Errorf("netplugin became ready without a store, or did not say what it lacks: %v", err)
		}
	})
	t.Run("a container can go, and is told to come later", func(t *testing.T) {
		c := cluster{c.Lab, t}
		if err := c.Detach(t.Context(), "gone"); err != nil {
			t.Errorf("detach: %v", err)
		}
		if _, err := c.Attach(t.Context(), lab.Attachment{Host: "host1", Name: "new", Network: "net"}); err == nil || !strings.Contains(err.Error(), "netmaster") {
			t.Errorf("attach: %v, want that netmaster is down", err)
		}
	})
	noneLost()
	c.reaches("b", a.IPv4)

	if err := host1.StartDaemon(t.Context(), "netmaster"); err != nil {
		t.Fatal(err)
	}
	c.ready("host2", "netplugin")
	again := c.attach("host2", "new", "net")
	c.reaches("a", again.IPv4)
	c.eventually("what has gone is forgotten", func() error {
		out, err := c.NetctlOutput(t.Context(), "endpoint", "inspect", gone.ContainerID)
		if err == nil {
			return fmt.Errorf("it is still there: %s", out)
		}
		return nil
	})
	c.reaches("b", a.IPv4)
}
