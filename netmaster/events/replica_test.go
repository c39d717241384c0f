package events_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// TestReplica: whatever breaks (connections, the store's watch, the client's place), a
// client of two netmasters that applies what it is told knows in the end what is in the
// store.
func TestReplica(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("memory-", seed), func(t *testing.T) {
			store := memory.New()
			replicate(t, rand.New(rand.NewPCG(seed, 1)), store, store.Resync)
		})
	}
	t.Run("etcd", func(t *testing.T) {
		store, err := embedded.Open(context.Background(), embedded.Config{Dir: t.TempDir(), ListenClient: netxtest.FreeAddress(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		// What is no object moves the revision, too.
		other := func() { commit(t, store, objdb.Txn{Then: []objdb.Op{objdb.Put("/contiv.io/other", nil)}}) }
		replicate(t, rand.New(rand.NewPCG(1, 2)), store, other)
	})
}

// replicate plays on a store; disturb is what else happens to it now and then.
func replicate(t *testing.T, random *rand.Rand, store objdb.Store, disturb func()) {
	var servers []*httptest.Server
	var urls []string
	for range 2 {
		s := httptest.NewServer(asAdmin(run(t, store, events.Config{MaxBatches: 1 + random.IntN(8)})))
		t.Cleanup(s.Close)
		servers, urls = append(servers, s), append(urls, s.URL)
	}
	c, err := client.New(client.Config{URLs: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)

	const marker = "tenant/the-end"
	over := errors.New("over")
	known := make(chan map[string]string, 1)
	began := make(chan struct{}) // until then, Watch gives up when nobody answers
	go func() {
		objects, once := map[string]string{}, sync.OnceFunc(func() { close(began) })
		err := c.Watch(t.Context(), nil, func(n contivmodel.Notice) error {
			once()
			if n.Event == contivmodel.NoticeReset {
				clear(objects)
			}
			for _, o := range n.Objects {
				if n.Event == contivmodel.NoticeRemoved {
					delete(objects, o.Kind+"/"+o.Key)
				} else {
					objects[o.Kind+"/"+o.Key] = string(o.Object)
				}
			}
			if _, ok := objects[marker]; ok {
				return over
			}
			return nil
		})
		if !errors.Is(err, over) {
			t.Errorf("Watch: %v", err)
		}
		known <- objects
	}()
	<-began
	for step := range 60 {
		name := fmt.Sprintf("network/t:%d", random.IntN(8))
		switch random.IntN(12) {
		case 0:
			servers[random.IntN(2)].CloseClientConnections()
		case 1:
			disturb()
		case 2, 3, 4:
			commit(t, store, objdb.Txn{Then: []objdb.Op{objdb.Delete(state.ModelRoot + name)}})
		default:
			put(t, store, step, name, "policy/t:p")
		}
	}
	put(t, store, 1, marker)

	kvs, _, err := store.List(context.Background(), state.ModelRoot)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, kv := range kvs {
		want[kv.Key[len(state.ModelRoot):]] = fmt.Sprintf(`{"v":%s`, kv.Value[len(`{"v": `):])
	}
	if diff := cmp.Diff(want, <-known); diff != "" {
		t.Errorf("what the client knows (-store +client):\n%s", diff)
	}
}
