package systemtests

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/busy"
)

// TestFirstPacket: the first packet of a container that has just been attached is answered
// by a neighbor on its host, also when another container had its address a moment ago, and the
// machine has much to do. Other hosts follow the store: how soon they answer is measured.
func TestFirstPacket(t *testing.T) {
	c := up(t, lab.Config{Hosts: 2})
	c.netctl("net", "create", "net", "--subnet=20.1.0.0/16", "--gateway=20.1.255.254", "--subnetv6=2001:db8:1::/64", "--gatewayv6=2001:db8:1::fe")
	near, far := c.attach("host1", "near", "net"), c.attach("host2", "far", "net")
	c.reaches("near", far.IPv4)
	c.reaches("near", far.IPv6)
	busy.Processes(t, 6)
	rounds := 60
	if long() {
		rounds = 1000
	}
	var attached, elsewhere []time.Duration
	for i := range rounds {
		name := fmt.Sprint("x", i)
		began := time.Now()
		x := c.attach("host1", name, "net")
		attached = append(attached, time.Since(began))
		to := []string{near.IPv4, near.IPv6, "20.1.255.254"}[i%3]
		// One packet, and as long for its answer as it takes.
		if out, err := c.Output(t.Context(), name, "ping", "-c", "1", "-W", "20", to); err != nil {
			t.Errorf("round %d: the first packet of %s to %s has no answer: %v\n%s", i, x.IPv4, to, err, out)
		}
		if i%10 == 0 {
			began = time.Now()
			c.run("far", "until ping -c 1 -W 0.1 "+x.IPv4+" >/dev/null; do :; done")
			elsewhere = append(elsewhere, time.Since(began))
		}
		if err := c.Detach(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(attached)
	slices.Sort(elsewhere)
	t.Logf("attached within %s (half), %s (all); answered to another host within %s (half), %s (all) more",
		attached[len(attached)/2].Round(time.Millisecond), attached[len(attached)-1].Round(time.Millisecond),
		elsewhere[len(elsewhere)/2].Round(time.Millisecond), elsewhere[len(elsewhere)-1].Round(time.Millisecond))
}
