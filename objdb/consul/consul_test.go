package consul_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	p.Start(t)
	contract.Run(t, func(t *testing.T) objdb.Store {
		return connect(t, consul.Config{Endpoints: []string{p.URL()}})
	}, contract.MinLease(consul.MinLease), contract.NewestOnly())
}

func TestOutages(t *testing.T) {
	t.Parallel()
	backend.Outages(t)
}

// TestNextEndpoint: an endpoint where nobody is, and one that has gone, are passed over,
// by requests, watches and leases.
func TestNextEndpoint(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	p.Start(t)
	dead := "http://127.0.0.1:" + netxtest.FreePort(t)
	s := connect(t, consul.Config{Endpoints: []string{dead, p.URL()}})
	if _, err := s.Get(ctx, root+"a"); !errs.Is(err, errs.NotFound) {
		t.Errorf("Get: %v", err)
	}
	s = connect(t, consul.Config{Endpoints: []string{dead, p.URL()}})
	if err := s.Health(ctx); err != nil {
		t.Errorf("Health: %v", err)
	}
	s = connect(t, consul.Config{Endpoints: []string{dead, p.URL()}})
	w := s.Watch(ctx, root)
	if b := <-w; !b.Snapshot {
		t.Errorf("first batch %+v", b)
	}
	s = connect(t, consul.Config{Endpoints: []string{dead, dead, p.URL()}})
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

// TestTransactions: what needs more than one look at the store.
func TestTransactions(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	f := backend.Follow(t, p)
	other := connect(t, consul.Config{Endpoints: []string{p.URL()}})
	leases := make([]objdb.LeaseID, 2)
	for i := range leases {
		l, err := f.Store.Grant(f.Ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		leases[i] = l.ID()
	}
	commit := func(s objdb.Store, txn objdb.Txn) (int64, error) { return s.Commit(f.Ctx, txn) }
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
		kv, err := f.Store.Get(f.Ctx, key)
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
		must(t, f.Store, with("1"))
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("2"))}})
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("1"))}})
		must(t, f.Store, with("1")) // same value, another index
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("2"))}})
		if _, err := commit(f.Store, with("1")); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("value that has changed: %v", err)
		}
		must(t, f.Store, with("2"))
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Delete(key)}})
		must(t, other, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte("2"))}})
		if _, err := commit(f.Store, with("2")); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("another incarnation: %v", err)
		}
	})

	t.Run("compared and put", func(t *testing.T) {
		key := root + "self"
		first := must(t, f.Store, objdb.Txn{If: []objdb.Cmp{objdb.Absent(key)}, Then: []objdb.Op{objdb.PutLeased(key, []byte("1"), leases[0])}})
		if kv := get(t, key); kv.CreateRevision != first {
			t.Errorf("created at %d, committed at %d", kv.CreateRevision, first)
		}
		must(t, f.Store, objdb.Txn{ // permanent from now on
			If:   []objdb.Cmp{objdb.Unchanged(get(t, key)), objdb.HasValue(key, []byte("1")), objdb.Present(key)},
			Then: []objdb.Op{objdb.Put(key, []byte("2"))},
		})
		must(t, f.Store, objdb.Txn{If: []objdb.Cmp{objdb.HasValue(key, []byte("2"))}, Then: []objdb.Op{objdb.Put(key, []byte("3"))}})
		if _, err := commit(f.Store, objdb.Txn{If: []objdb.Cmp{objdb.HasValue(key, []byte("2"))}, Then: []objdb.Op{objdb.Put(key, []byte("4"))}}); !errors.Is(err, objdb.ErrCompareFailed) {
			t.Errorf("value that has changed: %v", err)
		}
		if kv := get(t, key); kv.CreateRevision != first || string(kv.Value) != "3" {
			t.Errorf("now %+v", kv)
		}
	})

	t.Run("full, of leased keys", func(t *testing.T) {
		var give, take objdb.Txn
		for i := range f.Store.MaxOps() {
			key := fmt.Sprintf("%sfull/%02d", root, i)
			give.Then = append(give.Then, objdb.PutLeased(key, []byte("leased"), leases[0]))
			take.Then = append(take.Then, objdb.Put(key, []byte("permanent")))
			take.If = append(take.If, objdb.Absent(fmt.Sprintf("%snone/%02d", root, i)))
		}
		must(t, f.Store, give)
		rev := must(t, f.Store, take)
		kvs, _, err := f.Store.List(f.Ctx, root+"full/")
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
		must(t, f.Store, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(key, []byte("1"), leases[0])}})
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
		first := must(t, f.Store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}})
		if again := must(t, f.Store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); again != first {
			t.Errorf("the same put again: revision %d, was %d", again, first)
		}
		must(t, f.Store, objdb.Txn{Then: []objdb.Op{objdb.PutLeased(key, []byte("small"), leases[1])}})
		rev := must(t, f.Store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}})
		if kv := get(t, key); kv.ModRevision != rev || len(kv.Value) != len(value) {
			t.Errorf("at %d: %d bytes at %d", rev, len(kv.Value), kv.ModRevision)
		}
		_, err := commit(f.Store, objdb.Txn{If: []objdb.Cmp{objdb.Present(key)}, Then: []objdb.Op{objdb.Put(key, value)}})
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "too large") {
			t.Errorf("larger than a transaction may be: %v", err)
		}
	})

	t.Run("keys", func(t *testing.T) {
		for _, key := range []string{root + "a b/ü?x=1#%2F", root + "../x", root + "a//b", root + "tab\t"} {
			must(t, f.Store, objdb.Txn{If: []objdb.Cmp{objdb.Absent(key)}, Then: []objdb.Op{objdb.Put(key, []byte("v"))}})
			if kv := get(t, key); kv.Key != key || string(kv.Value) != "v" {
				t.Errorf("%q became %+v", key, kv)
			}
		}
		for _, key := range []string{"/", root + "\xff"} {
			if _, err := commit(f.Store, objdb.Txn{Then: []objdb.Op{objdb.Put(key, nil)}}); !errs.Is(err, errs.Invalid) {
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
