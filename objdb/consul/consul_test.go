package consul_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/consul"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.start(t)
	contract.Run(t, func(t *testing.T) objdb.Store {
		return connect(t, consul.Config{Endpoints: []string{p.url()}})
	}, contract.MinLease(consul.MinLease), contract.NewestOnly())
}

// fixture is a server, a store on it and a replica of one of its watches.
type fixture struct {
	ctx     context.Context
	p       *process
	store   *consul.Store
	watch   <-chan objdb.Batch
	replica contract.Replica
}

const root = "/test/"

func newFixture(t *testing.T) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	f := &fixture{ctx: ctx, p: newProcess(t)}
	f.p.start(t)
	f.store = connect(t, consul.Config{Endpoints: []string{f.p.url()}})
	f.watch = f.store.Watch(ctx, root)
	return f
}

// put repeats what was sent into a connection that broke: here that is safe.
func (f *fixture) put(t *testing.T, name, value string) int64 {
	t.Helper()
	for {
		rev, err := f.store.Commit(f.ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(root+name, []byte(value))}})
		if errs.Is(err, errs.Unavailable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
}

// until applies batches until key name has value.
func (f *fixture) until(t *testing.T, name, value string) {
	t.Helper()
	for f.replica.Content(root)[name] != value {
		select {
		case b := <-f.watch:
			if err := f.replica.Apply(b); err != nil {
				t.Fatal(err)
			}
		case <-f.ctx.Done():
			t.Fatalf("%s did not become %s: %v", name, value, f.replica.Content(root))
		}
	}
}

// TestRestartUnderWatch: a server that is stopped, or killed, and comes back is not
// noticed by a watch, nor by requests, except that they take longer.
func TestRestartUnderWatch(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			f := newFixture(t)
			f.put(t, "a", "1")
			f.until(t, "a", "1")
			f.p.Stop(t, sig)
			short, cancel := context.WithTimeout(f.ctx, 300*time.Millisecond)
			_, err := f.store.Get(short, root+"a")
			cancel()
			if !errs.Is(err, errs.Timeout) && !errs.Is(err, errs.Unavailable) {
				t.Errorf("Get while the server is down: %v", err)
			}
			f.p.start(t)
			f.put(t, "a", "2")
			f.until(t, "a", "2")
			f.put(t, "b", "1")
			f.until(t, "b", "1")
			if f.replica.Snapshots != 1 {
				t.Errorf("%d snapshots, want 1", f.replica.Snapshots)
			}
		})
	}
}

// TestBeginsWithoutServer: nothing fails because the server comes later.
func TestBeginsWithoutServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	s := connect(t, consul.Config{Endpoints: []string{p.url()}})
	w := s.Watch(ctx, root)
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if err := s.Health(short); err == nil || !strings.Contains(err.Error(), p.url()) {
		t.Errorf("Health without a server: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(root+"a", nil)}})
		if err != nil && !errs.Is(err, errs.Unavailable) { // which a slow election makes it
			t.Error(err)
		}
	})
	wg.Go(func() {
		if _, err := s.Grant(ctx, time.Minute); err != nil {
			t.Error(err)
		}
	})
	p.start(t)
	if b := <-w; !b.Snapshot {
		t.Errorf("first batch %+v", b)
	}
	wg.Wait()
}

// TestNextEndpoint: an endpoint where nobody is, and one that has gone, are passed over,
// by requests, watches and leases.
func TestNextEndpoint(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	p.start(t)
	dead := "http://127.0.0.1:" + netxtest.FreePort(t)
	s := connect(t, consul.Config{Endpoints: []string{dead, p.url()}})
	if _, err := s.Get(ctx, root+"a"); !errs.Is(err, errs.NotFound) {
		t.Errorf("Get: %v", err)
	}
	s = connect(t, consul.Config{Endpoints: []string{dead, p.url()}})
	if err := s.Health(ctx); err != nil {
		t.Errorf("Health: %v", err)
	}
	s = connect(t, consul.Config{Endpoints: []string{dead, p.url()}})
	w := s.Watch(ctx, root)
	if b := <-w; !b.Snapshot {
		t.Errorf("first batch %+v", b)
	}
	s = connect(t, consul.Config{Endpoints: []string{dead, dead, p.url()}})
	l, err := s.Grant(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(root+"a", nil, l.ID())}}); err != nil {
		t.Error(err)
	}
	if b := <-w; len(b.Events) != 1 || b.Events[0].KV.Key != root+"a" {
		t.Errorf("second batch %+v", b)
	}
}

// TestDataLoss: a store that comes back empty, or with another history that is as long
// as the lost one, makes a watch begin anew.
func TestDataLoss(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string]int{"shorter history": 0, "longer history": 60} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for i := range 40 {
				f.put(t, "old", fmt.Sprint(i))
			}
			f.until(t, "old", "39")
			port := f.p.http
			f.p.Stop(t, syscall.SIGKILL)
			if err := os.RemoveAll(filepath.Join(f.p.dir, "data")); err != nil {
				t.Fatal(err)
			}
			if writes > 0 { // behind the watch's back, then back on its port
				f.p.http = netxtest.FreePort(t)
				f.p.start(t)
				other := connect(t, consul.Config{Endpoints: []string{f.p.url()}})
				for i := range writes {
					if _, err := other.Commit(f.ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(fmt.Sprintf("%snew%d", root, i), nil)}}); err != nil {
						t.Fatal(err)
					}
				}
				f.p.Stop(t, syscall.SIGTERM)
				f.p.http = port
			}
			f.p.start(t)
			f.put(t, "fresh", "1")
			f.until(t, "fresh", "1")
			if _, there := f.replica.Content(root)["old"]; there || f.replica.Snapshots < 2 {
				t.Errorf("after %d snapshots: %v", f.replica.Snapshots, f.replica.Content(root))
			}
		})
	}
}

// TestLeaseEndsWithoutServer: an owner that cannot renew its lease knows in time.
func TestLeaseEndsWithoutServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l, err := f.store.Grant(f.ctx, time.Second) // becomes consul.MinLease
	if err != nil {
		t.Fatal(err)
	}
	f.p.Stop(t, syscall.SIGKILL)
	select {
	case <-l.Done():
	case <-f.ctx.Done():
		t.Error("the lease is not Done")
	}
}

// TestTransactions: what needs more than one look at the store.
func TestTransactions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := connect(t, consul.Config{Endpoints: []string{f.p.url()}})
	leases := make([]objdb.LeaseID, 2)
	for i := range leases {
		l, err := f.store.Grant(f.ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		leases[i] = l.ID()
	}
	commit := func(s objdb.Store, txn objdb.Txn) (int64, error) { return s.Commit(f.ctx, txn) }
	must := func(t *testing.T, s objdb.Store, txn objdb.Txn) int64 {
		t.Helper()
		rev, err := commit(s, txn)
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	get := func(t *testing.T, key string) objdb.KV {
		t.Helper()
		kv, err := f.store.Get(f.ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		return kv
	}

	t.Run("a hint that is out of date", func(t *testing.T) {
		key := root + "hint"
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("1"))}})
		created := get(t, key)
		with := func(value string) objdb.Txn {
			return objdb.Txn{If: []objdb.Cmp{objdb.HasValue(key, []byte(value)), objdb.Created(created)}, Then: []objdb.Op{objdb.Put(root+"written", []byte(value))}}
		}
		must(t, f.store, with("1"))
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("2"))}})
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("1"))}})
		must(t, f.store, with("1")) // same value, another index
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("2"))}})
		if _, err := commit(f.store, with("1")); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("value that has changed: %v", err)
		}
		must(t, f.store, with("2"))
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Delete(key)}})
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("2"))}})
		if _, err := commit(f.store, with("2")); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("another incarnation: %v", err)
		}
	})

	t.Run("compared and put", func(t *testing.T) {
		key := root + "self"
		first := must(t, f.store, objdb.Txn{If: []objdb.Cmp{objdb.Absent(key)}, Then: []objdb.Op{objdb.PutLeased(key, []byte("1"), leases[0])}})
		if kv := get(t, key); kv.CreateRevision != first {
			t.Errorf("created at %d, committed at %d", kv.CreateRevision, first)
		}
		must(t, f.store, objdb.Txn{ // permanent from now on
			If:   []objdb.Cmp{objdb.Unchanged(get(t, key)), objdb.HasValue(key, []byte("1")), objdb.Present(key)},
			Then: []objdb.Op{objdb.Put(key, []byte("2"))},
		})
		must(t, f.store, objdb.Txn{If: []objdb.Cmp{objdb.HasValue(key, []byte("2"))}, Then: []objdb.Op{objdb.Put(key, []byte("3"))}})
		if _, err := commit(f.store, objdb.Txn{If: []objdb.Cmp{objdb.HasValue(key, []byte("2"))}, Then: []objdb.Op{objdb.Put(key, []byte("4"))}}); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("value that has changed: %v", err)
		}
		if kv := get(t, key); kv.CreateRevision != first || string(kv.Value) != "3" {
			t.Errorf("now %+v", kv)
		}
	})

	t.Run("full, of leased keys", func(t *testing.T) {
		var give, take objdb.Txn
		for i := range f.store.MaxOps() {
			key := fmt.Sprintf("%sfull/%02d", root, i)
			give.Then = append(give.Then, objdb.PutLeased(key, []byte("leased"), leases[0]))
			take.Then = append(take.Then, objdb.Put(key, []byte("permanent")))
			take.If = append(take.If, objdb.Absent(fmt.Sprintf("%snone/%02d", root, i)))
		}
		must(t, f.store, give)
		rev := must(t, f.store, take)
		kvs, _, err := f.store.List(f.ctx, root+"full/")
		if err != nil || len(kvs) != len(take.Then) {
			t.Fatalf("%d keys, %v", len(kvs), err)
		}
		for _, kv := range kvs {
			if string(kv.Value) != "permanent" || kv.ModRevision != rev {
				t.Errorf("at %d: %+v", rev, kv)
			}
		}
	})

	t.Run("from lease to lease", func(t *testing.T) {
		key := root + "moved"
		must(t, f.store, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(key, []byte("1"), leases[0])}})
		rev := must(t, other, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(key, []byte("2"), leases[1])}})
		if kv := get(t, key); kv.ModRevision != rev || string(kv.Value) != "2" {
			t.Errorf("at %d: %+v", rev, kv)
		}
		if _, err := commit(other, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(key, nil, 12345)}}); !errors.Is(err, objdb.ErrLeaseEnded) {
			t.Errorf("a lease that never was: %v", err)
		}
	})

	t.Run("large values", func(t *testing.T) {
		key, value := root+"large", []byte(strings.Repeat("x", objdb.MaxValue))
		first := must(t, f.store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}})
		if again := must(t, f.store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); again != first {
			t.Errorf("the same put again: revision %d, was %d", again, first)
		}
		must(t, f.store, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(key, []byte("small"), leases[1])}})
		rev := must(t, f.store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}})
		if kv := get(t, key); kv.ModRevision != rev || len(kv.Value) != len(value) {
			t.Errorf("at %d: %d bytes at %d", rev, len(kv.Value), kv.ModRevision)
		}
		_, err := commit(f.store, objdb.Txn{If: []objdb.Cmp{objdb.Present(key)}, Then: []objdb.Op{objdb.Put(key, value)}})
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "too large") {
			t.Errorf("larger than a transaction may be: %v", err)
		}
	})

	t.Run("keys", func(t *testing.T) {
		for _, key := range []string{root + "a b/ü?x=1#%2F", root + "../x", root + "a//b", root + "tab\t"} {
			must(t, f.store, objdb.Txn{If: []objdb.Cmp{objdb.Absent(key)}, Then: []objdb.Op{objdb.Put(key, []byte("v"))}})
			if kv := get(t, key); kv.Key != key || string(kv.Value) != "v" {
				t.Errorf("%q became %+v", key, kv)
			}
		}
		for _, key := range []string{"/", root + "\xff"} {
			if _, err := commit(f.store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, nil)}}); !errs.Is(err, errs.Invalid) {
				t.Errorf("put %q: %v, want an Invalid error", key, err)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]consul.Config{
		"no endpoint":    {},
		"no scheme":      {Endpoints: []string{"127.0.0.1:1"}},
		"other scheme":   {Endpoints: []string{"unix://127.0.0.1:1"}},
		"no such file":   {Endpoints: []string{"https://127.0.0.1:1"}, CA: filepath.Join(dir, "none")},
		"not PEM":        {Endpoints: []string{"https://127.0.0.1:1"}, CA: junk},
		"not a key pair": {Endpoints: []string{"https://127.0.0.1:1"}, Cert: junk, Key: junk},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := consul.New(cfg)
			if err == nil {
				s.Close()
			}
			if !errs.Is(err, errs.Invalid) {
				t.Errorf("New = %v, want an Invalid error", err)
			}
		})
	}
}
