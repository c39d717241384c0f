package embedded_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// freePorts finds n ports of the loopback address that nobody listens on.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, netxtest.FreeAddress(t))
	}
	return out
}

func start(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestContractInProcess(t *testing.T) {
	server := start(t, embedded.Config{Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true})
	contract.Run(t, func(t *testing.T) objdb.Store {
		s := server.Connect()
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// TestContractCluster runs the suite over three members, each client on another one.
func TestContractCluster(t *testing.T) {
	peers, clients := freePorts(t, 3), freePorts(t, 3)
	var cluster []string
	for i, p := range peers {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, p))
	}
	members := make([]*embedded.Server, 3)
	var wg sync.WaitGroup
	for i := range members {
		dir := t.TempDir()
		wg.Go(func() {
			s, err := embedded.Start(t.Context(), embedded.Config{
				Dir: dir, ListenClient: clients[i], ListenPeer: peers[i],
				InitialCluster: strings.Join(cluster, ","), NoSync: true,
			})
			if err != nil {
				t.Error(err)
				return
			}
			members[i] = s
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	n := 0
	contract.Run(t, func(t *testing.T) objdb.Store {
		s := members[n%3].Connect()
		n++
		t.Cleanup(func() { s.Close() })
		return s
	})
	for _, m := range members {
		wg.Go(m.Close)
	}
	wg.Wait()
}

// TestRestart: what was written is there again, and other processes are served.
func TestRestart(t *testing.T) {
	cfg := embedded.Config{Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0]}
	for i := range 3 {
		store, err := embedded.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		kvs, _, err := store.List(t.Context(), "/")
		if err != nil || len(kvs) != i {
			t.Fatalf("after %d restarts: %d keys, %v", i, len(kvs), err)
		}
		remote, err := etcd.New(etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, MaxOps: store.MaxOps()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(fmt.Sprint("/", i), nil)}}); err != nil {
			t.Error(err)
		}
		if err := remote.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseWhileWatched: remote clients that watch and keep leases do not hold the
// server up; a watch survives the restart and misses nothing.
func TestCloseWhileWatched(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(30*time.Second))
	defer cancel()
	cfg := embedded.Config{Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true}
	server := start(t, cfg)
	remote, err := etcd.New(etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	w := remote.Watch(ctx, "/")
	var r contract.Replica
	if err := r.Apply(<-w); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Grant(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	server.Close()
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))

	again, err := embedded.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/a", []byte("1"))}}); err != nil {
		t.Fatal(err)
	}
	for r.Content("/")["a"] != "1" {
		if err := r.Apply(<-w); err != nil {
			t.Fatal(err)
		}
	}
	if r.Snapshots != 1 {
		t.Errorf("%d snapshots, want 1: the history was there", r.Snapshots)
	}
}

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  embedded.Config
		want string // of the error; empty: none
	}{
		"single":              {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:2379"}, ""},
		"all addresses":       {embedded.Config{Dir: "d", ListenClient: "0.0.0.0:2379"}, ""},
		"member by name":      {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:1", InitialCluster: "a=10.0.0.1:2380,b=http://10.0.0.2:2380", Name: "b"}, ""},
		"member by address":   {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:1", InitialCluster: "a=10.0.0.1:2380,b=http://10.0.0.2:2380", ListenPeer: "10.0.0.2:2380"}, ""},
		"no directory":        {embedded.Config{ListenClient: "127.0.0.1:1"}, "the store's directory is not set"},
		"no client address":   {embedded.Config{Dir: "d"}, `the store's client address: "" is not an IP address and a port`},
		"client host name":    {embedded.Config{Dir: "d", ListenClient: "a:1"}, `the store's client address: "a:1" is not an IP address and a port`},
		"member without name": {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:1", InitialCluster: "10.0.0.1:2380"}, `member "10.0.0.1:2380" of the store's initial cluster is not name=host:port`},
		"member without port": {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:1", InitialCluster: "a=10.0.0.1"}, `member a of the store's initial cluster: "10.0.0.1" is not an IP address and a port`},
		"member twice":        {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:1", InitialCluster: "a=10.0.0.1:1,a=10.0.0.2:1"}, "member a is listed twice in the store's initial cluster"},
		"not a member":        {embedded.Config{Dir: "d", ListenClient: "127.0.0.1:1", InitialCluster: "a=10.0.0.1:1", ListenPeer: "10.0.0.2:1"}, `this member (name "", peer address "10.0.0.2:1") is not in the store's initial cluster "a=10.0.0.1:1"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.cfg.Validate()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errs.Is(err, errs.Invalid) || err.Error() != tt.want {
				t.Errorf("Validate = %v, want %s", err, tt.want)
			}
		})
	}
}

// TestStartFails: an address in use is an error, not the end of the process, and a
// member that waits for others can be told to stop waiting.
func TestStartFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), ListenClient: l.Addr().String()})
	if !errs.Is(err, errs.Unavailable) {
		t.Errorf("Start on an address in use: %v", err)
	}

	ports := freePorts(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = embedded.Start(ctx, embedded.Config{
		Dir: t.TempDir(), ListenClient: ports[0], ListenPeer: ports[1],
		InitialCluster: fmt.Sprintf("a=%s,b=%s,c=%s", ports[1], ports[2], ports[3]),
	})
	if !errs.Is(err, errs.Timeout) {
		t.Errorf("Start without the other members: %v", err)
	}
}
