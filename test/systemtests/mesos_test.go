package systemtests

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/lab"
)

// TestMesos has the containers of Mesos' own containerizer, which have no network but
// what the plugin gives them, talk across hosts, and go without a trace. The daemons run
// for another runtime, as on the nodes of the original.
func TestMesos(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2, Mode: "docker", Mesos: true})
	c.netctl("net", "create", "web-net", "--subnet=10.36.28.0/24", "--gateway=10.36.28.1", "--subnetv6=2001:db8:1::/100")
	c.netctl("group", "create", "web-net", "frontend")
	state := func() []string {
		return slices.Concat(c.ports("host1"), c.ports("host2"), strings.Split(c.netctl("net", "inspect", "web-net"), "\n"))
	}
	before := state()
	var containers []lab.Container
	for n := range 6 {
		at := lab.Attachment{Host: fmt.Sprintf("host%d", n%2+1), Name: fmt.Sprintf("task%d", n), Network: "web-net", Plugin: lab.Netcontiv}
		if n%3 == 0 {
			at.Group = "frontend"
		}
		container, err := c.Attach(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		containers = append(containers, container)
	}
	for _, from := range containers {
		for _, to := range containers {
			if from.Name != to.Name {
				c.reaches(from.Name, to.IPv4)
				c.reaches(from.Name, to.IPv6)
			}
		}
		if err := c.Check(t.Context(), from.Name); err != nil {
			t.Error(err)
		}
	}
	c.restart("host1", "netplugin", syscall.SIGKILL)
	c.reaches("task0", containers[1].IPv4)
	for _, container := range containers {
		if err := c.Detach(t.Context(), container.Name); err != nil {
			t.Error(err)
		}
	}
	after := state()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
}
