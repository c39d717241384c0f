package etcd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/errs"
)

func TestContract(t *testing.T) {
	p := newProcess(t)
	p.Start(t)
	contract.Run(t, func(t *testing.T) objdb.Store {
		return connect(t, etcd.Config{Endpoints: []string{p.URL()}})
	})
}

func TestOutages(t *testing.T) { backend.Outages(t) }

// TestCompaction: a watch that was cut off while the changes it misses were compacted
// away gets a snapshot.
func TestCompaction(t *testing.T) {
	p := newProcess(t)
	f := backend.Follow(t, p)
	f.Put(t, "a", "1")
	f.Put(t, "gone", "1")
	f.Until(t, "gone", "1")
	p.Stop(t, syscall.SIGTERM)

	// The same data on another port: the watch does not see what happens now.
	back := p.Move(t)
	p.Start(t)
	raw, err := clientv3.NewFromURL(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Delete(f.Ctx, root+"gone"); err != nil {
		t.Fatal(err)
	}
	resp, err := raw.Put(f.Ctx, root+"a", "2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Compact(f.Ctx, resp.Header.Revision); err != nil {
		t.Fatal(err)
	}
	p.Stop(t, syscall.SIGTERM)
	back()
	p.Start(t)

	f.Until(t, "a", "2")
	if _, there := f.Content()["gone"]; there || f.Replica.Snapshots != 2 {
		t.Errorf("after %d snapshots: %v", f.Replica.Snapshots, f.Content())
	}
}

// TestLargeCatchUp: changes of many megabytes that happened while a watch was cut off
// arrive, in pieces on the wire, but each revision whole, and without a snapshot.
func TestLargeCatchUp(t *testing.T) {
	p := newProcess(t)
	f := backend.Follow(t, p)
	f.Put(t, "a", "1")
	f.Until(t, "a", "1")
	p.Stop(t, syscall.SIGTERM)
	back := p.Move(t)
	p.Start(t)
	other := connect(t, etcd.Config{Endpoints: []string{p.URL()}})
	big := strings.Repeat("x", 400<<10)
	for i := range 12 {
		if _, err := other.Commit(f.Ctx, objdb.Txn{Then: []objdb.Op{
			objdb.Put(root+"big1", fmt.Append(nil, i, big)), objdb.Put(root+"big2", fmt.Append(nil, i, big)), objdb.Put(root+"n", fmt.Append(nil, i)),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	p.Stop(t, syscall.SIGTERM)
	back()
	p.Start(t)
	f.Until(t, "n", "11")
	for _, name := range []string{"big1", "big2"} {
		if got := f.Content()[name]; got != "11 "+big && got != "11"+big {
			t.Errorf("%s has %d bytes, beginning %.10q", name, len(got), got)
		}
	}
	if f.Replica.Snapshots != 1 {
		t.Errorf("%d snapshots, want 1", f.Replica.Snapshots)
	}
}

// TestPages: a list that takes many requests is one list.
func TestPages(t *testing.T) {
	p := newProcess(t)
	f := backend.Follow(t, p)
	const n = 2_345
	var txn objdb.Txn
	commit := func() {
		if _, err := f.Store.Commit(f.Ctx, txn); err != nil {
			t.Fatal(err)
		}
		txn.Then = nil
	}
	// Below the prefix itself, and in directories of any size.
	key := func(i int) string {
		return fmt.Sprintf("%s%s%05d", root, []string{"", "d/", "e/f/", "g/"}[min(i*5/n, 3)], i)
	}
	for i := range n {
		txn.Then = append(txn.Then, objdb.Put(key(i), []byte("v")))
		if len(txn.Then) == f.Store.MaxOps() {
			commit()
		}
	}
	commit()
	small := connect(t, etcd.Config{Endpoints: []string{p.URL()}})
	for _, page := range []int64{1000, 7, n, n - 1, n + 1, 1} {
		if page == 1 && testing.Short() {
			continue
		}
		etcd.SetPageSize(small, page)
		kvs, _, err := small.List(f.Ctx, root)
		if err != nil || len(kvs) != n {
			t.Fatalf("pages of %d: %d keys, %v", page, len(kvs), err)
		}
		for i, kv := range kvs {
			if kv.Key != key(i) {
				t.Fatalf("pages of %d: key %d is %s", page, i, kv.Key)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]etcd.Config{
		"no endpoint":    {},
		"no such file":   {Endpoints: []string{"https://127.0.0.1:1"}, CA: filepath.Join(dir, "none")},
		"not PEM":        {Endpoints: []string{"https://127.0.0.1:1"}, CA: junk},
		"not a key pair": {Endpoints: []string{"https://127.0.0.1:1"}, Cert: junk, Key: junk},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := etcd.New(cfg)
			if err == nil {
				s.Close()
			}
			if !errs.Is(err, errs.Invalid) {
				t.Errorf("New = %v, want an Invalid error", err)
			}
		})
	}
}
