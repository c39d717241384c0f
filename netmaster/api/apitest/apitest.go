// Package apitest runs a leading netmaster's API over a given store, for tests.
package apitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/api"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
)

// Leadership is a lock key in a store without anybody who competes for it.
type Leadership struct {
	store objdb.Store
	fence objdb.Cmp
	lost  chan struct{}
	once  sync.Once
}

// Lead takes the lock: whoever held it is a former leader then.
func Lead(ctx context.Context, store objdb.Store) (*Leadership, error) {
	txn := objdb.Txn{Then: []objdb.Op{objdb.Delete(state.LeaderKey)}}
	if _, err := store.Commit(ctx, txn); err != nil {
		return nil, err
	}
	txn.Then = []objdb.Op{objdb.Put(state.LeaderKey, []byte("127.0.0.1:9999"))}
	if _, err := store.Commit(ctx, txn); err != nil {
		return nil, err
	}
	kv, err := store.Get(ctx, state.LeaderKey)
	if err != nil {
		return nil, err
	}
	return &Leadership{
		store: store,
		fence: objdb.Cmp{Type: objdb.CmpCreate, Key: kv.Key, Revision: kv.CreateRevision},
		lost:  make(chan struct{}),
	}, nil
}

// Fence implements objdb.Leadership.
func (l *Leadership) Fence() objdb.Cmp { return l.fence }

// Lost implements objdb.Leadership.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

// Resign implements objdb.Leadership.
func (l *Leadership) Resign(ctx context.Context) error {
	l.once.Do(func() { close(l.lost) })
	_, err := l.store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{l.fence}, Then: []objdb.Op{objdb.Delete(state.LeaderKey)}})
	return err
}

// Config is what tests start a netmaster with unless they say otherwise.
func Config(log logrus.FieldLogger) api.Config {
	return api.Config{Log: log, ClusterMode: "test", FwdMode: "routing", Infra: "default"}
}

// Start leads over store and serves the API on a loopback address until the test
// ends. It returns the base URL.
func Start(t testing.TB, store objdb.Store, cfg api.Config) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	lead, err := Lead(ctx, store)
	if err != nil {
		t.Fatalf("take the lock: %v", err)
	}
	c, err := api.NewController(cfg)(ctx, store, lead)
	if err != nil {
		t.Fatalf("start the controller: %v", err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"GitCommit":"abc1234","Version":"1.2.0","BuildTime":"04-16-2019.09-31-33.UTC"}` + "\n"))
			return
		}
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		cancel()
	})
	return s.URL
}

// Log returns a logger that writes to the test's output.
func Log(t testing.TB) logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(t.Output())
	return l
}
