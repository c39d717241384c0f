package ui

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/test/lab/labtest"
)

// leader is the host of the netmaster that leads, as another one says.
func (c cluster) leader(from *lab.Host) (leader *lab.Host) {
	c.Helper()
	eventually.True(c.TB, "there is a leader", func() bool {
		resp, err := from.HTTP().Get("http://127.0.0.1:9999/healthz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text := make([]byte, 1000)
		n, _ := resp.Body.Read(text)
		i := slices.IndexFunc(c.Masters(), func(h *lab.Host) bool {
			return resp.StatusCode == http.StatusOK && strings.Contains(string(text[:n]), `"leader":"`+h.ControlIP()+":")
		})
		if i >= 0 {
			leader = c.Masters()[i]
		}
		return i >= 0
	})
	return leader
}

// TestReconnect: the page follows the objects while the leader is killed and another one takes
// over, and goes on by itself when the netmaster that it came from was away.
func TestReconnect(t *testing.T) {
	c := cluster{labtest.Up(t, lab.Config{Hosts: 3, Masters: 3}), t}
	c.netctl("net", "create", "-s", "10.1.0.0/16", "before")
	leader := c.leader(c.Masters()[0])
	follower := c.Masters()[0]
	if follower == leader {
		follower = c.Masters()[1]
	}
	p := browse(t, "http://"+gate(t, c.Lab, follower.Name))
	p.open("/objects/network").sees(".table", "before")
	p.sees("[data-live=live]", "Live")
	if err := leader.RestartDaemon(t.Context(), "netmaster", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.leader(follower)
	p.open("/objects/network?new=1")
	p.fill(map[string]string{"tenantName": "default", "networkName": "after", "encap": "vxlan", "subnet": "10.2.0.0/16"})
	p.click("button", "Review")
	p.click("button", "Create")
	p.sees(".detail h2", "default:after")
	p.sees(".table", "after")

	if err := follower.StopDaemon(t.Context(), "netmaster", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.sees("[data-live]", "Reconnecting")
	if err := follower.StartDaemon(t.Context(), "netmaster"); err != nil {
		t.Fatal(err)
	}
	c.leader(follower)
	p.sees("[data-live=live]", "Live")
	c.netctl("net", "create", "-s", "10.3.0.0/16", "later")
	p.sees(".table", "later")
	p.sleep(func() {
		if err := follower.RestartDaemon(t.Context(), "netmaster", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		c.netctl("net", "create", "-s", "10.4.0.0/16", "overnight")
		c.netctl("net", "rm", "before")
	})
	p.open("/objects/network").sees(".table", "overnight")
	p.gone(".table", "before")
}
