package systemtests

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/test/lab"
)

// hosts returns the cluster as netctl shows it, by label.
func (c cluster) hosts() (map[string]clusterapi.Host, error) {
	out, err := c.NetctlOutput(c.t.Context(), "cluster", "ls", "--json")
	if err != nil {
		return nil, err
	}
	var cluster clusterapi.Cluster
	if err := json.Unmarshal([]byte(out), &cluster); err != nil {
		return nil, err
	}
	hosts := map[string]clusterapi.Host{}
	for _, h := range cluster.Hosts {
		hosts[h.Host] = h
	}
	return hosts, nil
}

// TestHosts: netmaster knows what every host has in its switch, and a user can wait for
// it.
func TestHosts(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.eventually("both hosts report that they are well", func() error {
		hosts, err := c.hosts()
		if err == nil && (hosts["host1"].State != clusterapi.Up || hosts["host2"].State != clusterapi.Up) {
			err = fmt.Errorf("%+v", hosts)
		}
		return err
	})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--wait")
	a := c.attach("host1", "a", "net")
	before, err := c.hosts()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range before {
		if h.State != clusterapi.Up || h.Flows == 0 || h.Digest == "" || h.Version == "" {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if before["host1"].Endpoints != 1 || before["host2"].Endpoints != 0 {
		t.Errorf("endpoints: %+v", before)
	}
	h2, err := c.Host("host2")
	if err != nil {
		t.Fatal(err)
	}
	// Without its switch a host cannot apply anything, and says so; what it has
	// compiled is the same after the switch is back.
	if err := h2.StopDaemon(t.Context(), "ovs", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	out, err := c.NetctlOutput(t.Context(), "net", "create", "late", "--subnet=30.1.1.0/24", "--wait=3s")
	if err == nil || !strings.Contains(err.Error()+out, "waiting for host2") {
		t.Errorf("host2 has applied a change without a switch: %v, %s", err, out)
	}
	if err := h2.StartDaemon(t.Context(), "ovs"); err != nil {
		t.Fatal(err)
	}
	c.netctl("net", "rm", "late", "--wait")
	c.eventually("host2 is as before", func() error {
		hosts, err := c.hosts()
		if err == nil && (hosts["host2"].State != clusterapi.Up || hosts["host2"].Lag != 0 || hosts["host2"].Flows < before["host2"].Flows) {
			err = fmt.Errorf("%+v, was %+v", hosts["host2"], before["host2"])
		}
		return err
	})
	b := c.attach("host2", "b", "net")
	c.reaches("a", b.IPv4)
	c.reaches("b", a.IPv4)
}
