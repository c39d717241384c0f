package systemtests

import (
	"syscall"
	"testing"

	"github.com/contiv/netplugin/test/lab"
)

// withoutGateway tries, in a lab of any mode, a network without gateway: its containers
// reach each other all the same, over restarts.
func withoutGateway(t *testing.T, l *lab.Lab, encap string) {
	t.Run("a network without gateway", func(t *testing.T) {
		c := cluster{l, t}
		c.netctl("net", "create", "alone", "--encap", encap, "--pkt-tag", "1701", "--subnet=70.1.1.0/24", "--subnetv6=2001:db8:70::/100", "--wait")
		a, near, far := c.attach("host1", "alone-a", "alone"), c.attach("host1", "alone-near", "alone"), c.attach("host2", "alone-far", "alone")
		for _, to := range []lab.Container{near, far} {
			c.reaches(a.Name, to.IPv4)
			c.reaches(a.Name, to.IPv6)
			c.reaches(to.Name, a.IPv4)
		}
		noneLost := c.watch(a.Name, far.IPv4)
		c.restart("host1", "netplugin", syscall.SIGKILL)
		c.restart("host2", "netplugin", syscall.SIGTERM)
		noneLost()
		for _, gone := range []lab.Container{a, near, far} {
			if err := c.Detach(t.Context(), gone.Name); err != nil {
				t.Fatal(err)
			}
		}
		c.netctl("net", "rm", "alone", "--wait")
	})
}
