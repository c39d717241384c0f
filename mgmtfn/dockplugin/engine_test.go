package dockplugin

import (
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/docknet"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	records "github.com/contiv/netplugin/state/docknet"
)

// TestHostWithoutEngine: netmaster waits for the docker networks of a host that has an
// Engine, and not for those of one that has none.
func TestHostWithoutEngine(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.EngineGrace = time.Nanosecond })
	register := objdb.Put(state.ServiceRoot+"netplugin/host1:9002", []byte(`{"ServiceName":"netplugin","Hostname":"host1"}`))
	if _, err := w.store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{register}}); err != nil {
		t.Fatal(err)
	}
	noted := func(want bool) {
		t.Helper()
		w.eventually("the store says whether host1 has an Engine", func() bool {
			_, err := w.store.Get(t.Context(), records.HostRoot+"host1/"+records.NoEngine)
			return (err == nil) == want
		})
	}
	noted(false)
	w.engine.down(true)
	noted(true)
	wait := docknet.Hosts{Store: w.store, Patience: time.Hour}
	if err := wait.Settle(t.Context(), state.NetworkRef{Tenant: "default", Network: "net1"}); err != nil {
		t.Error(err)
	}
	w.stop()
	w.start(func(c *Config) { c.EngineGrace = time.Hour })
	noted(true) // by an earlier agent
	w.engine.down(false)
	noted(false)
}
