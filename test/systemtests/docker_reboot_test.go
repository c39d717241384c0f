package systemtests

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/test/lab"
)

// TestDockerReboot cuts the power of a host that has containers. Those that are to be
// restarted come back with their networks and the addresses they ask for, nothing of the
// others is left, whether agent or Engine is first.
func TestDockerReboot(t *testing.T) {
	t.Parallel() // it mostly waits
	for i, version := range engines() {
		t.Run("Engine "+version, func(t *testing.T) {
			t.Parallel()
			c := dockers{up(t, lab.Config{Hosts: 2, Store: lab.StoreEtcd, Docker: version, Relay: true})}
			c.netctl("net", "create", "front", "--subnet=20.1.1.0/24", "--gateway=20.1.1.254", "--subnetv6=2001:db8:1::/100", "--gatewayv6=2001:db8:1::fe")
			c.netctl("net", "create", "back", "--subnet=30.1.1.0/24", "--gateway=30.1.1.254")
			for _, host := range []string{"host1", "host2"} {
				c.networks(host, "front", "back")
			}
			c.container("host1", "peer", "front")
			c.container("host2", "always", "front", "--restart", "always")
			c.container("host2", "fixed", "front", "--restart", "always", "--ip", "20.1.1.77", "--ip6", "2001:db8:1::77")
			c.container("host2", "both", "back", "--restart", "unless-stopped")
			c.docker("host2", "network", "connect", "--ip", "20.1.1.88", "front", "both")
			c.container("host2", "once", "front")
			host, err := c.Host("host2")
			if err != nil {
				t.Fatal(err)
			}
			type order struct {
				name   string
				first  []string // one after the other
				second []string // at the same time
			}
			orders := []order{
				{"agent first", []string{"ovs", "docker-relay", "netplugin", "docker"}, nil},
				{"Engine and agent at once", []string{"ovs", "docker-relay"}, []string{"docker", "netplugin"}},
				{"Engine, agent and switch at once", []string{"docker-relay"}, []string{"docker", "netplugin", "ovs"}},
			}
			if !long() { // one order with each Engine
				orders = orders[i%3 : i%3+1]
			}
			for _, order := range orders {
				t.Run(order.name, func(t *testing.T) {
					c := c.sub(t)
					if err := c.PowerOff(t.Context(), "host2"); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					if err := c.PowerOn(t.Context(), "host2", order.first...); err != nil {
						t.Fatal(err)
					}
					g, ctx := errgroup.WithContext(t.Context())
					for _, daemon := range order.second {
						g.Go(func() error { return host.StartDaemon(ctx, daemon) })
					}
					if err := g.Wait(); err != nil {
						t.Fatal(err)
					}
					c.eventually("containers come back", func() bool {
						return len(strings.Fields(c.docker("host2", "ps", "-q"))) == 3
					})
					t.Logf("%s: containers run %.1f s after the power is back", order.name, time.Since(began).Seconds())
					c.agree()
					for name, want := range map[string]string{"fixed": "20.1.1.77", "both": "20.1.1.88"} {
						if got := c.address("host2", name, "front"); got != want {
							t.Errorf("%s has address %s, want %s as before", name, got, want)
						}
						c.pings("host1", "peer", want)
					}
					c.pings("host1", "peer", c.address("host2", "always", "front"))
					c.pings("host1", "peer", "2001:db8:1::77")
					if got := c.docker("host2", "inspect", "-f", "{{.State.Status}}", "once"); got != "exited" {
						t.Errorf("a container that is not to be restarted is %s", got)
					}
				})
			}
			c.docker("host2", "rm", "-f", "always", "fixed", "both", "once")
			c.agree()
			c.allocated("back", 0)
		})
	}
}
