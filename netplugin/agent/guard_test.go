package agent

import (
	"encoding/json"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// TestEmptiedStore: a store that has lost everything takes nothing from running containers.
// The agent says so, keeps to it whatever else comes, and follows the store once it has
// networks again.
func TestEmptiedStore(t *testing.T) {
	a, d, _ := start(t, memory.New())
	n := network("net1", 1)
	mine, other := endpoint(n, 1, "host1"), endpoint(n, 2, "host1")
	before := objdb.Batch{Snapshot: true, Revision: 10, Events: []objdb.Event{
		event(t, state.NetworkRoot+n.ID, n), event(t, state.HostRoot+"host1", state.Host{ID: "host1", VtepIP: "192.168.60.10"}),
		event(t, state.EndpointRoot+mine.ID, mine), event(t, state.EndpointRoot+other.ID, other),
	}}
	deliver := func(b objdb.Batch) {
		t.Helper()
		if b, ok := a.admit(b); ok {
			a.apply(b)
		}
	}
	endpoints := func(want int) {
		t.Helper()
		eventually.True(t, "the endpoints are declared", func() bool { return len(d.State().Endpoints) == want })
	}
	eventually.True(t, "the agent has read the store", func() bool { r, _, _ := a.Progress(); return r > 0 })
	deliver(before)
	endpoints(2)
	deliver(objdb.Batch{Snapshot: true, Revision: 11})
	endpoints(2)
	if err := a.Ready(); err == nil {
		t.Error("the agent is ready with an empty store")
	}
	// Other agents publish their hosts meanwhile.
	deliver(objdb.Batch{Revision: 12, Events: before.Events[1:2]})
	endpoints(2)
	deliver(objdb.Batch{Snapshot: true, Revision: 13, Events: before.Events[1:2]})
	endpoints(2)
	// The store comes back without the second container, which has gone meanwhile.
	deliver(objdb.Batch{Revision: 14, Events: []objdb.Event{before.Events[2], before.Events[0]}})
	endpoints(1)
	if a.emptied {
		t.Error("the agent does not notice that the store has networks again")
	}
	// Without a container here an empty store is as good as any.
	deliver(objdb.Batch{Revision: 15, Events: []objdb.Event{{KV: objdb.KV{Key: before.Events[2].KV.Key}, Deleted: true}}})
	deliver(objdb.Batch{Snapshot: true, Revision: 16})
	endpoints(0)
	eventually.True(t, "the network is gone", func() bool { return len(d.State().Networks) == 0 })
}

func event(t *testing.T, key string, v any) objdb.Event {
	t.Helper()
	value, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return objdb.Event{KV: objdb.KV{Key: key, Value: value}}
}
