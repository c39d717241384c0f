package etcd_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/objdb/internal/servertest"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// TestTLS: a server that asks for certificates serves who has one, and nobody else.
func TestTLS(t *testing.T) {
	a := servertest.NewAuthority(t)
	valid := time.Now().Add(time.Hour)
	a.Issue(t, "server", "server", valid)
	a.Issue(t, "client", "client", valid)
	p := newProcess(t, "--client-cert-auth", "--trusted-ca-file", a.File("ca.pem"), "--cert-file", a.File("server.pem"), "--key-file", a.File("server.key"))
	p.scheme = "https"
	p.Start(t)

	good := etcd.Config{Endpoints: []string{p.URL()}, CA: a.File("ca.pem"), Cert: a.File("client.pem"), Key: a.File("client.key")}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := connect(t, good).Health(ctx); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	for name, change := range map[string]func(*etcd.Config){
		"no certificate":         func(c *etcd.Config) { c.Cert, c.Key = "", "" },
		"unknown authority":      func(c *etcd.Config) { c.CA = "" },
		"plain text":             func(c *etcd.Config) { *c = etcd.Config{Endpoints: []string{"http://" + p.client}} },
		"authority over http://": func(c *etcd.Config) { c.Endpoints, c.Cert, c.Key = []string{"http://" + p.client}, "", "" },
	} {
		cfg := good
		change(&cfg)
		short, stop := context.WithTimeout(ctx, 500*time.Millisecond)
		if err := connect(t, cfg).Health(short); err == nil {
			t.Errorf("%s: the server answers", name)
		}
		stop()
	}
}

// TestRotation: a client goes on with the certificate that has taken the place of one
// that expired, without being restarted.
func TestRotation(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a := servertest.NewAuthority(t)
	valid := time.Now().Add(time.Hour)
	a.Issue(t, "server", "server", valid)
	a.Issue(t, "client", "client", valid.Add(-61*time.Minute))
	p := newProcess(t, "--client-cert-auth", "--trusted-ca-file", a.File("ca.pem"), "--cert-file", a.File("server.pem"), "--key-file", a.File("server.key"))
	p.scheme = "https"
	p.Start(t)
	s := connect(t, etcd.Config{Endpoints: []string{p.URL()}, CA: a.File("ca.pem"), Cert: a.File("client.pem"), Key: a.File("client.key")})
	short, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if err := s.Health(short); err == nil {
		t.Error("the server accepts a certificate that has expired")
	}
	a.Issue(t, "client", "client", valid)
	if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/a", nil)}}); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
}

// TestUser: a server that asks for a password.
func TestUser(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	early := connect(t, etcd.Config{Endpoints: []string{p.URL()}, User: "root", Password: "secret"})
	p.Start(t)
	if err := early.Health(ctx); err != nil {
		t.Errorf("with a password that nobody asks for: %v", err)
	}
	raw, err := clientv3.NewFromURL(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, do := range []func() error{
		func() error { _, err := raw.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := raw.RoleAdd(ctx, "root"); return err },
		func() error { _, err := raw.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := raw.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := early.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/early", nil)}}); err != nil {
		t.Errorf("with the password, connected before it was needed: %v", err)
	}
	s := connect(t, etcd.Config{Endpoints: []string{p.URL()}, User: "root", Password: "secret"})
	if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/a", nil)}}); err != nil {
		t.Errorf("with the password: %v", err)
	}
	watch := s.Watch(ctx, "/")
	if b := <-watch; len(b.Events) != 2 {
		t.Errorf("watch with the password: %+v", b)
	}
	lease, err := s.Grant(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	p.Stop(t, syscall.SIGTERM) // forgets the tokens it has given out
	p.Start(t)
	if _, err := s.Get(ctx, "/a"); err != nil {
		t.Errorf("with a token that was forgotten: %v", err)
	}
	if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/late", nil)}}); err != nil {
		t.Error(err)
	}
	for seen := false; !seen; {
		select {
		case b := <-watch:
			for _, ev := range b.Events {
				seen = seen || ev.KV.Key == "/late"
			}
		case <-ctx.Done():
			t.Fatal("the watch did not go on after its token was forgotten")
		}
	}
	for name, cfg := range map[string]etcd.Config{
		"no user":        {Endpoints: []string{p.URL()}},
		"wrong password": {Endpoints: []string{p.URL()}, User: "root", Password: "guess"},
	} {
		_, err := connect(t, cfg).Get(ctx, "/a")
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v, want an Invalid error", name, err)
		}
	}
}

// TestOneEndpointOfTwo: it is enough that one of the servers is there.
func TestOneEndpointOfTwo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	p.Start(t)
	s := connect(t, etcd.Config{Endpoints: []string{"http://" + netxtest.FreeAddress(t), p.URL(), "http://" + netxtest.FreeAddress(t)}})
	for range 20 {
		if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/a", nil)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRightWithdrawn: a user who may no longer read sees no deletion. The watch says nothing,
// Health says why, and both go on by themselves when the right is given back.
func TestRightWithdrawn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	p.Start(t)
	raw, err := clientv3.NewFromURL(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	end := clientv3.GetPrefixRangeEnd("/c/state/")
	read := clientv3.PermissionType(clientv3.PermRead)
	for _, do := range []func() error{
		func() error { _, err := raw.Put(ctx, "/c/state/a", "1"); return err },
		func() error { _, err := raw.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := raw.RoleAdd(ctx, "root"); return err },
		func() error { _, err := raw.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := raw.UserAdd(ctx, "agent", "secret"); return err },
		func() error { _, err := raw.RoleAdd(ctx, "agent"); return err },
		func() error { _, err := raw.RoleGrantPermission(ctx, "agent", "/c/state/", end, read); return err },
		func() error { _, err := raw.UserGrantRole(ctx, "agent", "agent"); return err },
		func() error { _, err := raw.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	asRoot := func() *clientv3.Client { // one for each life of the server, which forgets its tokens
		t.Helper()
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{p.URL()}, Username: "root", Password: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	root := asRoot()
	s := connect(t, etcd.Config{Endpoints: []string{p.URL()}, User: "agent", Password: "secret"})
	watch := s.Watch(ctx, "/c/state/")
	if b := <-watch; !b.Snapshot || len(b.Events) != 1 {
		t.Fatalf("with the right: %+v", b)
	}
	if err := s.Health(ctx); err != nil {
		t.Errorf("with the right to one prefix: %v", err)
	}
	if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/c/state/a", nil)}}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a write of a reader: %v, want an Invalid error", err)
	}
	if _, err := root.RoleRevokePermission(ctx, "agent", "/c/state/", end); err != nil {
		t.Fatal(err)
	}
	root.Close()
	raw.Close()
	p.Stop(t, syscall.SIGTERM) // the watch has to begin again
	p.Start(t)
	for s.Health(ctx) == nil {
		if ctx.Err() != nil {
			t.Fatal("Health does not notice that the watch is refused")
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case b := <-watch:
		t.Errorf("without the right the watch delivers %+v", b)
	default:
	}
	root = asRoot()
	defer root.Close()
	if _, err := root.RoleGrantPermission(ctx, "agent", "/c/state/", end, read); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Put(ctx, "/c/state/b", "2"); err != nil {
		t.Fatal(err)
	}
	select {
	case b := <-watch:
		for _, ev := range b.Events {
			if ev.Deleted {
				t.Errorf("with the right again, a deletion: %+v", b)
			}
		}
	case <-ctx.Done():
		t.Error("with the right again the watch delivers nothing")
	}
	if err := s.Health(ctx); err != nil {
		t.Errorf("with the right again: %v", err)
	}
}
