package daemon_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// TestFollowerBecomesLeader: a request that was sent to a leader in vain is served, as a whole,
// by the netmaster that has kept it.
func TestFollowerBecomesLeader(t *testing.T) {
	store := memory.New()
	var read atomic.Int64
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/echo/" {
			return // what followers listen to
		}
		n, _ := io.Copy(io.Discard, r.Body)
		read.Add(n)
		w.Header().Set("X-Contiv-Not-Served", "true")
	}))
	defer leader.Close()
	lock := objdb.Txn{Then: []objdb.Op{objdb.Put(state.LeaderKey, []byte(leader.Listener.Addr().String()))}}
	if _, err := store.Commit(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) { return store, nil }}
	m.start(t, time.Minute)
	eventually.True(t, "it follows", func() bool {
		_, body := m.get(t, "/info")
		return strings.Contains(body, leader.Listener.Addr().String())
	})
	go func() {
		for read.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		_, _ = store.Commit(context.Background(), objdb.Txn{Then: []objdb.Op{objdb.Delete(state.LeaderKey)}})
	}()
	if code, body := m.do(t, http.MethodPost, "/api/v1/echo/", "the body"); code != http.StatusOK || body != "m POST /api/v1/echo/ token the body" {
		t.Errorf("%d %q", code, body)
	}
}
