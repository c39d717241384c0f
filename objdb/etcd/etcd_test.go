package etcd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func TestContract(t *testing.T) {
	p := newProcess(t)
	p.start(t)
	contract.Run(t, func(t *testing.T) objdb.Store {
		return connect(t, etcd.Config{Endpoints: []string{p.url()}})
	})
}

// fixture is a server, a store on it and a replica of one of its watches.
type fixture struct {
	ctx     context.Context
	p       *process
	store   *etcd.Store
	watch   <-chan objdb.Batch
	replica contract.Replica
}

const root = "/test/"

func newFixture(t *testing.T, args ...string) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	f := &fixture{ctx: ctx, p: newProcess(t, args...)}
	f.p.start(t)
	f.store = connect(t, etcd.Config{Endpoints: []string{f.p.url()}})
	f.watch = f.store.Watch(ctx, root)
	return f
}

func (f *fixture) put(t *testing.T, name, value string) int64 {
	t.Helper()
	for {
		rev, err := f.store.Commit(f.ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(root+name, []byte(value))}})
		if errs.Is(err, errs.Unavailable) { // sent into a connection that broke: here, repeating is safe
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
		})
	}
}

// TestBeginsWithoutServer: nothing fails because the server comes later.
func TestBeginsWithoutServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	s := connect(t, etcd.Config{Endpoints: []string{p.url()}})
	w := s.Watch(ctx, root)
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if err := s.Health(short); err == nil || !strings.Contains(err.Error(), p.url()) {
		t.Errorf("Health without a server: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(root+"a", nil)}}); err != nil {
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

// TestCompaction: a watch that was cut off while the changes it misses were compacted
// away gets a snapshot.
func TestCompaction(t *testing.T) {
	f := newFixture(t)
	f.put(t, "a", "1")
	f.put(t, "gone", "1")
	f.until(t, "gone", "1")
	proxy := f.p.client
	f.p.Stop(t, syscall.SIGTERM)

	// The same data on another port: the watch does not see what happens now.
	f.p.client = netxtest.FreeAddress(t)
	f.p.start(t)
	raw, err := clientv3.NewFromURL(f.p.url())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Delete(f.ctx, root+"gone"); err != nil {
		t.Fatal(err)
	}
	resp, err := raw.Put(f.ctx, root+"a", "2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Compact(f.ctx, resp.Header.Revision); err != nil {
		t.Fatal(err)
	}
	f.p.Stop(t, syscall.SIGTERM)
	f.p.client = proxy
	f.p.start(t)

	f.until(t, "a", "2")
	if _, there := f.replica.Content(root)["gone"]; there || f.replica.Snapshots != 2 {
		t.Errorf("after %d snapshots: %v", f.replica.Snapshots, f.replica.Content(root))
	}
}

// TestLargeCatchUp: changes of many megabytes that happened while a watch was cut off
// arrive, in pieces on the wire, but each revision whole, and without a snapshot.
func TestLargeCatchUp(t *testing.T) {
	f := newFixture(t)
	f.put(t, "a", "1")
	f.until(t, "a", "1")
	address := f.p.client
	f.p.Stop(t, syscall.SIGTERM)
	f.p.client = netxtest.FreeAddress(t)
	f.p.start(t)
	other := connect(t, etcd.Config{Endpoints: []string{f.p.url()}})
	big := strings.Repeat("x", 400<<10)
	for i := range 12 {
		if _, err := other.Commit(f.ctx, objdb.Txn{Then: []objdb.Op{
			objdb.Put(root+"big1", fmt.Append(nil, i, big)), objdb.Put(root+"big2", fmt.Append(nil, i, big)), objdb.Put(root+"n", fmt.Append(nil, i)),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	f.p.Stop(t, syscall.SIGTERM)
	f.p.client = address
	f.p.start(t)
	f.until(t, "n", "11")
	for _, name := range []string{"big1", "big2"} {
		if got := f.replica.Content(root)[name]; got != "11 "+big && got != "11"+big {
			t.Errorf("%s has %d bytes, beginning %.10q", name, len(got), got)
		}
	}
	if f.replica.Snapshots != 1 {
		t.Errorf("%d snapshots, want 1", f.replica.Snapshots)
	}
}

// TestDataLoss: a store that comes back empty, or with another history that is as long
// as the lost one, makes a watch begin anew.
func TestDataLoss(t *testing.T) {
	for name, writes := range map[string]int{"shorter history": 0, "longer history": 30} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for i := range 10 {
				f.put(t, "old", fmt.Sprint(i))
			}
			f.until(t, "old", "9")
			address := f.p.client
			f.p.Stop(t, syscall.SIGKILL)
			if err := os.RemoveAll(f.p.dir); err != nil {
				t.Fatal(err)
			}
			if writes > 0 { // behind the watch's back, then back on its port
				f.p.client = netxtest.FreeAddress(t)
				f.p.start(t)
				other := connect(t, etcd.Config{Endpoints: []string{f.p.url()}})
				for i := range writes {
					if _, err := other.Commit(f.ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(root+"new", fmt.Append(nil, i))}}); err != nil {
						t.Fatal(err)
					}
				}
				f.p.Stop(t, syscall.SIGTERM)
				f.p.client = address
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

// TestLeaseEndsWithoutServer: an owner that cannot refresh its lease knows in time.
func TestLeaseEndsWithoutServer(t *testing.T) {
	f := newFixture(t)
	l, err := f.store.Grant(f.ctx, 2*time.Second)
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

// TestPages: a list that takes many requests is one list.
func TestPages(t *testing.T) {
	f := newFixture(t)
	const n = 2_345
	var txn objdb.Txn
	commit := func() {
		if _, err := f.store.Commit(f.ctx, txn); err != nil {
			t.Fatal(err)
		}
		txn.Then = nil
	}
	for i := range n {
		txn.Then = append(txn.Then, objdb.Put(fmt.Sprintf("%s%05d", root, i), []byte("v")))
		if len(txn.Then) == f.store.MaxOps() {
			commit()
		}
	}
	commit()
	small := connect(t, etcd.Config{Endpoints: []string{f.p.url()}})
	for _, page := range []int64{1000, n, n - 1, n + 1, 1} {
		if page == 1 && testing.Short() {
			continue
		}
		etcd.SetPageSize(small, page)
		kvs, _, err := small.List(f.ctx, root)
		if err != nil || len(kvs) != n {
			t.Fatalf("pages of %d: %d keys, %v", page, len(kvs), err)
		}
		for i, kv := range kvs {
			if kv.Key != fmt.Sprintf("%s%05d", root, i) {
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
