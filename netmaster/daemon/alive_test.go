package daemon_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// otherLeader is a process that holds the lock, for ever as far as the store knows, and
// answers at /alive until it is killed.
type otherLeader struct {
	server *http.Server
	heard  chan context.CancelFunc // one per follower that listens; breaks its connection
	lock   objdb.KV
}

func newOtherLeader(t *testing.T, store objdb.Store) *otherLeader {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &otherLeader{heard: make(chan context.CancelFunc, 16)}
	o.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/alive" {
			http.NotFound(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		_ = http.NewResponseController(w).Flush()
		o.heard <- cancel
		<-ctx.Done()
	})}
	go func() { _ = o.server.Serve(listener) }()
	t.Cleanup(func() { o.server.Close() })
	lock := objdb.Txn{Then: []objdb.Op{objdb.Put(state.LeaderKey, []byte(listener.Addr().String()))}}
	if _, err := store.Commit(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	if o.lock, err = store.Get(t.Context(), state.LeaderKey); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestKilledLeader: the lock of a leader whose process is gone is not waited for.
func TestKilledLeader(t *testing.T) {
	store := memory.New()
	other := newOtherLeader(t, store)
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) { return store, nil }}
	m.start(t, 5*time.Minute)
	<-other.heard
	other.server.Close() // as the kernel does with what a killed process leaves
	eventually.True(t, "the follower leads", func() bool { return m.leads(t) })
}

// TestBrokenConnection: a connection that breaks proves nothing as long as the leader
// takes new ones.
func TestBrokenConnection(t *testing.T) {
	store := memory.New()
	other := newOtherLeader(t, store)
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) { return store, nil }}
	m.start(t, 5*time.Minute)
	for range 3 {
		breakIt := <-other.heard
		breakIt()
	}
	<-other.heard
	kv, err := store.Get(t.Context(), state.LeaderKey)
	if err != nil || kv.CreateRevision != other.lock.CreateRevision {
		t.Errorf("the lock is %+v (%v), was %+v", kv, err, other.lock)
	}
	if m.leads(t) {
		t.Error("the follower leads beside a leader that lives")
	}
}

// TestAlive: what followers listen to ends with the daemon, and holds nothing up.
func TestAlive(t *testing.T) {
	store := memory.New()
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) { return store, nil }}
	m.start(t, time.Minute)
	resp, err := http.Get("http://" + m.addr + "/alive")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %s", resp.Status)
	}
	m.halt(t)
	if n, _ := resp.Body.Read(make([]byte, 1)); n != 0 {
		t.Error("it says something")
	}
}
