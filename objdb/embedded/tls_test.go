package embedded_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/contract"
	"github.com/contiv/netplugin/objdb/embedded"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
	"github.com/contiv/netplugin/utils/tlsport"
)

// agentReads are what agents of these tests may read.
var agentReads = []string{"/c/state/", "/c/global"}

type cluster struct {
	authority *pki.Authority
	roots     []byte
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	a := pkitest.Authority(t)
	return &cluster{authority: a, roots: pkitest.Roots(a)}
}

func (c *cluster) member(t testing.TB, unit pki.Unit, name string) *pki.Credentials {
	t.Helper()
	return pkitest.Credentials(t, c.authority, unit, name)
}

// secured is one member that serves TLS.
func (c *cluster) secured(t testing.TB, mode tlsport.Mode) (embedded.Config, *embedded.Server) {
	t.Helper()
	cfg := embedded.Config{
		Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true, Mode: mode,
		Credentials: c.member(t, pki.UnitMaster, "127.0.0.1"), AgentReads: agentReads,
	}
	return cfg, start(t, cfg)
}

func connect(t testing.TB, cfg etcd.Config) *etcd.Store {
	t.Helper()
	if cfg.MaxOps == 0 {
		cfg.MaxOps = 1024
	}
	s, err := etcd.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw is etcd's own client, which tries whatever a test wants.
func raw(t testing.TB, address string, c *pki.Credentials) *clientv3.Client {
	t.Helper()
	cfg := clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()}
	if c != nil {
		cfg.Endpoints, cfg.TLS = []string{"https://" + address}, pki.ClientConfig(c, pki.UnitMaster)
	}
	cli, err := clientv3.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	return cli
}

// TestContractTLS: over TLS, and a certificate of a netmaster, the store is the same.
func TestContractTLS(t *testing.T) {
	c := newCluster(t)
	cfg, _ := c.secured(t, tlsport.Require)
	master := c.member(t, pki.UnitMaster, "m1")
	contract.Run(t, func(t *testing.T) objdb.Store {
		return connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, Cluster: master})
	})
}

// attacks are what an agent must not be able to do.
func attacks(ctx context.Context, c *clientv3.Client) map[string]func() error {
	watch := func(key string, opts ...clientv3.OpOption) func() error {
		return func() error {
			wctx, stop := context.WithCancel(ctx)
			defer stop()
			resp, ok := <-c.Watch(wctx, key, append(opts, clientv3.WithCreatedNotify())...)
			if !ok {
				return errors.New("the watch ended")
			}
			return resp.Err()
		}
	}
	get := func(key string, opts ...clientv3.OpOption) func() error {
		return func() error { _, err := c.Get(ctx, key, opts...); return err }
	}
	return map[string]func() error{
		"put":               func() error { _, err := c.Put(ctx, "/c/state/eps/x", "mine"); return err },
		"delete":            func() error { _, err := c.Delete(ctx, "/c/state/eps/x"); return err },
		"transaction":       func() error { _, err := c.Txn(ctx).Then(clientv3.OpGet("/c/state/")).Commit(); return err },
		"compact":           func() error { _, err := c.Compact(ctx, 1); return err },
		"lease":             func() error { _, err := c.Grant(ctx, 5); return err },
		"leases":            func() error { _, err := c.Leases(ctx); return err },
		"snapshot":          func() error { _, err := snapshot(ctx, c); return err },
		"defragment":        func() error { _, err := c.Maintenance.HashKV(ctx, c.Endpoints()[0], 0); return err },
		"alarms":            func() error { _, err := c.AlarmList(ctx); return err },
		"members":           func() error { _, err := c.MemberList(ctx); return err },
		"add a member":      func() error { _, err := c.MemberAdd(ctx, []string{"http://127.0.0.1:9"}); return err },
		"enable auth":       func() error { _, err := c.AuthEnable(ctx); return err },
		"auth status":       func() error { _, err := c.AuthStatus(ctx); return err },
		"add a user":        func() error { _, err := c.UserAdd(ctx, "me", "x"); return err },
		"read intent":       get("/c/obj/", clientv3.WithPrefix()),
		"read users":        get("/c/auth/users/admin"),
		"read all":          get("\x00", clientv3.WithFromKey()),
		"read beyond":       get("/c/state/", clientv3.WithRange("/c/statf/")),
		"read past the end": get("/c/state/", clientv3.WithFromKey()),
		"watch intent":      watch("/c/obj/", clientv3.WithPrefix()),
		"watch all":         watch("/", clientv3.WithPrefix()),
		"watch beyond":      watch("/c/state/", clientv3.WithRange("/d")),
	}
}

func snapshot(ctx context.Context, c *clientv3.Client) (int, error) {
	r, err := c.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var b [16]byte
	return r.Read(b[:])
}

// TestAgentOnlyReads: what a stolen host could do to the whole cluster while the store was
// open, it cannot do with the certificate of an agent.
func TestAgentOnlyReads(t *testing.T) {
	c := newCluster(t)
	cfg, _ := c.secured(t, tlsport.Require)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host1 := raw(t, cfg.ListenClient, c.member(t, pki.UnitAgent, "host1"))
	for name, attack := range attacks(ctx, host1) {
		err := attack()
		if code := codeOf(err); code != codes.PermissionDenied || !strings.Contains(err.Error(), "agent host1 may not") {
			t.Errorf("%s: %v (%s), want PermissionDenied", name, err, code)
		}
	}
	// The same where the store is open: it is not the requests that are wrong.
	open := embedded.Config{Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true}
	start(t, open)
	anybody := attacks(ctx, raw(t, open.ListenClient, nil))
	for name, attack := range anybody {
		if name == "add a member" {
			continue // it succeeds, and then the store has no quorum any more
		}
		if err := attack(); codeOf(err) == codes.PermissionDenied || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s in an open store: %v", name, err)
		}
	}
	if err := anybody["add a member"](); err != nil {
		t.Errorf("add a member to an open store: %v", err)
	}
}

func codeOf(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// TestAgentView: what an agent follows it sees, as a netmaster writes it.
func TestAgentView(t *testing.T) {
	c := newCluster(t)
	cfg, server := c.secured(t, tlsport.Require)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	master := server.Connect()
	defer master.Close()
	put := func(key, value string) {
		t.Helper()
		if _, err := master.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte(value))}}); err != nil {
			t.Fatal(err)
		}
	}
	put("/c/state/a", "1")
	put("/c/global", "g")
	agent := connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, Cluster: c.member(t, pki.UnitAgent, "host1")})
	if err := agent.Health(ctx); err != nil {
		t.Errorf("health: %v", err)
	}
	if kv, err := agent.Get(ctx, "/c/global"); err != nil || string(kv.Value) != "g" {
		t.Errorf("the global record: %+v, %v", kv, err)
	}
	watch := agent.Watch(ctx, "/c/state/")
	if b := <-watch; !b.Snapshot || len(b.Events) != 1 {
		t.Errorf("the snapshot: %+v", b)
	}
	put("/c/state/b", "2")
	if b := <-watch; len(b.Events) != 1 || b.Events[0].KV.Key != "/c/state/b" {
		t.Errorf("the change: %+v", b)
	}
}

// TestStrangers: nobody gets as far as a request without a certificate of the cluster.
func TestStrangers(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	cfg, _ := c.secured(t, tlsport.Require)
	monitor := c.member(t, pki.UnitMonitor, "collector")
	foreign := other.member(t, pki.UnitMaster, "127.0.0.1")
	if err := foreign.SetRoots(c.roots); err != nil {
		t.Fatal(err)
	}
	nobody := pki.NewCredentials()
	if err := nobody.SetRoots(c.roots); err != nil {
		t.Fatal(err)
	}
	for name, credentials := range map[string]*pki.Credentials{"plain": nil, "no certificate": nobody, "monitor": monitor, "other cluster": foreign} {
		short, stop := context.WithTimeout(t.Context(), time.Second)
		_, err := raw(t, cfg.ListenClient, credentials).Get(short, "/c/global")
		if err == nil {
			t.Errorf("%s: the store answers", name)
		}
		stop()
	}
	// A server that is no netmaster of the cluster is not believed either.
	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := connect(t, etcd.Config{Endpoints: []string{"https://" + cfg.ListenClient}, Cluster: other.member(t, pki.UnitAgent, "host1"), PlainToo: true}).Health(short); err == nil {
		t.Error("a client of another cluster is served")
	}
}

// TestAccept: plain clients and those with TLS are served on one port, and the plain ones are
// told of.
func TestAccept(t *testing.T) {
	c := newCluster(t)
	var plain atomic.Int64
	cfg := embedded.Config{
		Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true, Mode: tlsport.Accept,
		Credentials: c.member(t, pki.UnitMaster, "127.0.0.1"), AgentReads: agentReads, Plain: func(net.Addr) { plain.Add(1) },
	}
	start(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	secure := connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, Cluster: c.member(t, pki.UnitAgent, "host1"), PlainToo: true})
	if _, _, err := secure.List(ctx, "/c/state/"); err != nil {
		t.Error(err)
	}
	if n := plain.Load(); n != 0 {
		t.Errorf("%d plain connections of a client that has TLS", n)
	}
	old := connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}})
	if _, err := old.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/c/state/a", nil)}}); err != nil {
		t.Error(err)
	}
	if plain.Load() == 0 {
		t.Error("nobody was told of the plain client")
	}
}

// TestPlainToo: a client that may goes on with a server that has no TLS yet, and has it once
// the server does; one that may not does not.
func TestPlainToo(t *testing.T) {
	c := newCluster(t)
	cfg := embedded.Config{Dir: t.TempDir(), ListenClient: freePorts(t, 1)[0], NoSync: true}
	server := start(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host1 := c.member(t, pki.UnitAgent, "host1")
	both := connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, Cluster: host1, PlainToo: true})
	if err := both.Health(ctx); err != nil {
		t.Fatalf("a plain server: %v", err)
	}
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if err := connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, Cluster: host1}).Health(short); err == nil {
		t.Error("a client that must have TLS talks to a plain server")
	}
	server.Close()
	cfg.Mode, cfg.Credentials, cfg.AgentReads = tlsport.Require, c.member(t, pki.UnitMaster, "127.0.0.1"), agentReads
	start(t, cfg)
	if _, _, err := both.List(ctx, "/c/state/"); err != nil {
		t.Errorf("the server has TLS now: %v", err)
	}
}

// TestRevoked: a host whose certificate is revoked is cut off within seconds, in the middle
// of a watch.
func TestRevoked(t *testing.T) {
	c := newCluster(t)
	cfg, _ := c.secured(t, tlsport.Require)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := raw(t, cfg.ListenClient, c.member(t, pki.UnitAgent, "host1"))
	if _, err := client.Get(ctx, "/c/global"); err != nil {
		t.Fatal(err)
	}
	conn := client.ActiveConnection()
	before := conn.GetState()
	cfg.Credentials.SetRevoked(func(cert *x509.Certificate) bool { return cert.Subject.CommonName == "host1" })
	began := time.Now()
	if !conn.WaitForStateChange(ctx, before) {
		t.Fatal("the connection stays")
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("the connection was cut after %s, want 5 s at most", d)
	}
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if _, err := client.Get(short, "/c/global"); err == nil {
		t.Error("a revoked host is served again")
	}
}

// TestHalfOpen: thousands of connections that say nothing keep nobody out.
func TestHalfOpen(t *testing.T) {
	c := newCluster(t)
	cfg, _ := c.secured(t, tlsport.Require)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var idle []net.Conn
	defer func() {
		for _, conn := range idle {
			conn.Close()
		}
	}()
	for range 3000 {
		conn, err := net.Dial("tcp", cfg.ListenClient)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	agent := connect(t, etcd.Config{Endpoints: []string{"http://" + cfg.ListenClient}, Cluster: c.member(t, pki.UnitAgent, "host1")})
	if _, _, err := agent.List(ctx, "/c/state/"); err != nil {
		t.Errorf("beside %d idle connections: %v", len(idle), err)
	}
}
