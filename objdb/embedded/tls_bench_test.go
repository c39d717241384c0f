package embedded_test

import (
	"fmt"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// BenchmarkRemote compares a remote client over TLS with one without.
func BenchmarkRemote(b *testing.B) {
	c := newCluster(b)
	for _, mode := range []tlsport.Mode{tlsport.Off, tlsport.Require} {
		cfg := embedded.Config{Dir: b.TempDir(), ListenClient: freePorts(b, 1)[0], NoSync: true, Mode: mode, Credentials: c.member(b, pki.UnitMaster, "m0"), AgentReads: agentReads}
		start(b, cfg)
		client := etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}}
		if mode.TLS() {
			client.Cluster = c.member(b, pki.UnitMaster, "m1")
		}
		store := connect(b, client)
		b.Run("put and get/"+string(mode), func(b *testing.B) {
			value := make([]byte, 512)
			for i := range b.N {
				key := fmt.Sprint("/c/state/", i%1000)
				if _, err := store.Commit(b.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); err != nil {
					b.Fatal(err)
				}
				if _, err := store.Get(b.Context(), key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
