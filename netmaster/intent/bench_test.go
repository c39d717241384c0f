package intent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

// BenchmarkLoad measures the time a new leader needs to serve 50,000 endpoints, and the
// memory for them.
func BenchmarkLoad(b *testing.B) {
	const endpoints = 50_000
	store := memory.New()
	e, _, stop := lead(b, store)
	e.mustNetwork(b, "n", "10.0.0.0/8")
	stop()
	addr := netip.MustParseAddr("10.0.0.0")
	for i := 0; i < endpoints; i += 40 {
		var ops []objdb.Op
		for k := range 40 {
			addr = addr.Next()
			ep := state.Endpoint{
				ID: fmt.Sprintf("n.default-%064x", i+k), NetID: "n.default", EndpointID: fmt.Sprintf("%064x", i+k), IPAddress: addr.String(),
				MacAddress: macOf(addr), HomingHost: fmt.Sprint("host", k), ContainerID: fmt.Sprintf("%064x", i+k), EPCommonName: fmt.Sprint("pod-", i+k),
			}
			for key, v := range map[string]any{
				state.EndpointRoot + ep.ID:                    ep,
				state.IPAMRoot + "n.default/" + addr.String(): state.AddressClaim{Owner: ownerEndpoint(ep.ID)},
			} {
				text, err := json.Marshal(v)
				if err != nil {
					b.Fatal(err)
				}
				ops = append(ops, objdb.Put(key, text))
			}
		}
		if _, err := store.Commit(b.Context(), objdb.Txn{Then: ops}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		before := heap()
		e, _, stop := lead(b, store)
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		stop()
		runtime.KeepAlive(e)
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools keep what is in them for one more collection
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
