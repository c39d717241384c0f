package consul_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
)

// BenchmarkCommit measures transactions like those of an endpoint: the fence compared,
// three keys created. Every commit is on the disk when it returns.
func BenchmarkCommit(b *testing.B) {
	p := newProcess(b)
	p.Start(b)
	store := connect(b, consul.Config{Endpoints: []string{p.URL()}})
	if _, err := store.Commit(b.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put("/lock", nil)}}); err != nil {
		b.Fatal(err)
	}
	lock, err := store.Get(b.Context(), "/lock")
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 400)
	var n atomic.Int64
	for _, clients := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("%d clients", clients), func(b *testing.B) {
			b.ReportAllocs()
			var (
				wg   sync.WaitGroup
				left atomic.Int64
			)
			left.Store(int64(b.N))
			for range clients {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						i := n.Add(1)
						_, err := store.Commit(b.Context(), objdb.Txn{
							If: []objdb.Cmp{objdb.Created(lock)},
							Then: []objdb.Op{
								objdb.Put(fmt.Sprint("/a/", i), value), objdb.Put(fmt.Sprint("/b/", i), value[:40]), objdb.Put(fmt.Sprint("/c/", i), value[:40]),
							},
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
