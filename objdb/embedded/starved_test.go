package embedded_test

import (
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/objdb/internal/servertest"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// TestStarvedLeader: no lock is lost because the machine has too much to do. The leader
// is in the store's own process; agents are not.
func TestStarvedLeader(t *testing.T) {
	addr := netxtest.FreeAddress(t)
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), ListenClient: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	first := true
	servertest.LeadStarved(t, func(t testing.TB) objdb.Store {
		var s objdb.Store
		if first {
			s = server.Connect()
		} else if s, err = etcd.New(etcd.Config{Endpoints: []string{"http://" + addr}}); err != nil {
			t.Fatal(err)
		}
		first = false
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, 5*time.Second)
}
