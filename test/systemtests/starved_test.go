package systemtests

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/test/lab"
	"github.com/contiv/netplugin/utils/busy"
)

var terms = regexp.MustCompile(`(?m)^contiv_netmaster_leader_terms_total (\d+)`)

// terms is how often netmasters of the lab have become leader.
func (c cluster) terms(masters int) (n int) {
	c.t.Helper()
	for i := range masters {
		m := terms.FindStringSubmatch(c.metrics("host"+strconv.Itoa(i+1), "9999"))
		if m == nil {
			c.t.Fatalf("host%d does not count terms", i+1)
		}
		k, _ := strconv.Atoi(m[1]) // of digits
		n += k
	}
	return n
}

// TestStarved: on a machine with far more to do than it can, no leader loses its lock, and
// no request of netctl or of a container's attachment fails. That counts; how long they take
// does not.
func TestStarved(t *testing.T) {
	crowd, during := 20, 20*time.Second
	if long() {
		during = 10 * time.Minute
	}
	for _, l := range []lab.Config{{Hosts: 1}, {Hosts: 2, Masters: 2, Store: lab.StoreEtcd}} {
		store := l.Store
		if store == "" {
			store = lab.StoreEmbedded
		}
		t.Run(store, func(t *testing.T) {
			c := up(t, l)
			c.netctl("net", "create", "net", "--subnet=20.1.0.0/16", "--gateway=20.1.255.254")
			masters := max(l.Masters, 1)
			before := c.terms(masters)
			busy.Processes(t, crowd)
			ctx, cancel := context.WithTimeout(t.Context(), during)
			defer cancel()
			var requests, failed atomic.Int32
			var wg sync.WaitGroup
			each := func(do func(i int) error) {
				wg.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						requests.Add(1)
						if err := do(i); err != nil {
							failed.Add(1)
							t.Error(err)
						}
					}
				})
			}
			each(func(i int) error {
				name := fmt.Sprint("g", i%5)
				if _, err := c.NetctlOutput(t.Context(), "group", "create", "net", name); err != nil {
					return err
				}
				_, err := c.NetctlOutput(t.Context(), "group", "rm", name)
				return err
			})
			each(func(int) error {
				_, err := c.NetctlOutput(t.Context(), "net", "ls")
				return err
			})
			each(func(i int) error {
				name := fmt.Sprint("c", i)
				if _, err := c.Attach(t.Context(), lab.Attachment{Host: "host" + strconv.Itoa(i%l.Hosts+1), Name: name, Network: "net"}); err != nil {
					return err
				}
				return c.Detach(t.Context(), name)
			})
			wg.Wait()
			lost := c.terms(masters) - before
			t.Logf("%s, %d busy processes, %s: %d requests, %d failed, %d lost locks", store, crowd, during, requests.Load(), failed.Load(), lost)
			if lost != 0 {
				t.Errorf("the lock was lost %d times", lost)
			}
		})
	}
}
