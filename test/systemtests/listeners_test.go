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

// TestListeners: a host listens where docs/operations.md says, and nowhere else: neither
// OpenFlow nor the switch's database can be reached by TCP, whatever the mode.
func TestListeners(t *testing.T) {
	for _, c := range []lab.Config{{Hosts: 2}, {Hosts: 2, NetMode: "vlan", FwdMode: "bridge"}} {
		t.Run(c.NetMode+c.FwdMode, func(t *testing.T) {
			c := up(t, c)
			c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
			c.attach("host1", "a", "net")
			c.attach("host2", "b", "net")
			// The lab's database server has a port of its own; ours use its socket.
			netplugin := []string{"*:9090", "CTRL:9002", "CTRL:9003", "127.0.0.1:6640"}
			netmaster := []string{"CTRL:2379", "CTRL:9001", "*:9999"}
			for number, want := range [][]string{slices.Concat(netmaster, netplugin), netplugin} {
				host, err := c.Host(fmt.Sprint("host", number+1))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for line := range strings.Lines(c.run(host.Name, "ss -Hltn")) {
					local := strings.Fields(line)[3]
					got = append(got, strings.ReplaceAll(local, host.ControlIP()+":", "CTRL:"))
				}
				slices.Sort(got)
				slices.Sort(want)
				if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
					t.Errorf("%s listens (-want +got):\n%s", host.Name, diff)
				}
			}
		})
	}
}

// TestControlPortChanges: netmaster comes back with its control addresses on other ports,
// and on those of before. What flows goes on; agents find it there, and start containers.
func TestControlPortChanges(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254")
	c.attach("host1", "a", "net")
	b := c.attach("host2", "b", "net")
	master, err := c.Host("host1")
	if err != nil {
		t.Fatal(err)
	}
	noneLost := c.watch("a", b.IPv4)
	for i, flags := range [][]string{
		{"--internal-address", master.ControlIP() + ":7999", "--rpc-address", master.ControlIP() + ":7001"}, nil,
	} {
		if err := master.StopDaemon(t.Context(), "netmaster", syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := master.StartDaemon(t.Context(), "netmaster", flags...); err != nil {
			t.Fatal(err)
		}
		port, gone := "9001", "7001"
		if flags != nil {
			port, gone = gone, port
		}
		c.becomes("host1", fmt.Sprintf("ss -Hltn | grep -q %s:%s && ! ss -Hltn | grep -q %[1]s:%[3]s", master.ControlIP(), port, gone))
		c.netctl("net", "create", fmt.Sprint("net", i), fmt.Sprintf("--subnet=30.1.%d.0/24", i), "--wait")
		late := c.attach("host2", fmt.Sprint("late", i), "net")
		c.reaches("a", late.IPv4)
	}
	noneLost()
}
