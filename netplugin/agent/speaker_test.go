package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// TestSpeakerSecret: a password that is not in the record is asked for until the leader
// answers, and again when it has another name.
func TestSpeakerSecret(t *testing.T) {
	store := memory.New()
	put(t, store, state.GlobalKey, global)
	var password atomic.Value
	var asked atomic.Int32
	_, d, _ := startWith(t, store, func(c *Config) {
		c.BGPSecret = func(_ context.Context, host string) (string, error) {
			if host != "host1" {
				t.Errorf("asked for host %s", host)
			}
			if asked.Add(1) == 1 {
				return "", errors.New("no netmaster is the leader")
			}
			return password.Load().(string), nil
		}
	})
	speaker := func(rec state.Bgp) {
		rec.Hostname, rec.RouterIP, rec.As, rec.Neighbor, rec.NeighborAs = "host1", "50.1.1.2/24", "65002", "50.1.1.200", "500"
		put(t, store, state.BgpRoot+"host1", rec)
	}
	runs := func(with string) func() bool {
		return func() bool {
			s := d.State().Speaker
			return s != nil && len(s.Config.Neighbors) == 1 && s.Config.Neighbors[0].Password == with
		}
	}
	password.Store("first")
	speaker(state.Bgp{Secret: "s1"})
	eventually.True(t, "the password came", runs("first"))
	password.Store("second")
	speaker(state.Bgp{Secret: "s1", TTLSecurity: true})
	eventually.True(t, "another setting, the same password", func() bool { return runs("first")() && d.State().Speaker.Config.Neighbors[0].TTLSecurity })
	speaker(state.Bgp{Secret: "s2"})
	eventually.True(t, "another password", runs("second"))
	speaker(state.Bgp{Password: "third"})
	eventually.True(t, "a password in the record", runs("third"))
	commit(t, store, objdb.Delete(state.BgpRoot+"host1"))
	eventually.True(t, "no speaker", func() bool { return d.State().Speaker == nil })
}
