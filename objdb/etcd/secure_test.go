package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/etcd"
	"github.com/contiv/netplugin/utils/errs"
)

// authority makes certificates for one test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.pem and name.key.
func (a *authority) issue(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.Subject = pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, key
}

// TestTLS: a server that asks for certificates serves who has one, and nobody else.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	a.issue(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: usage, KeyUsage: x509.KeyUsageDigitalSignature})
	a.issue(t, "client", &x509.Certificate{ExtKeyUsage: usage, KeyUsage: x509.KeyUsageDigitalSignature})
	p := newProcess(t, "--client-cert-auth", "--trusted-ca-file", a.file("ca.pem"), "--cert-file", a.file("server.pem"), "--key-file", a.file("server.key"))
	p.scheme = "https"
	p.start(t)

	good := etcd.Config{Endpoints: []string{p.url()}, CA: a.file("ca.pem"), Cert: a.file("client.pem"), Key: a.file("client.key")}
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

// TestUser: a server that asks for a password.
func TestUser(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := newProcess(t)
	early := connect(t, etcd.Config{Endpoints: []string{p.url()}, User: "root", Password: "secret"})
	p.start(t)
	if err := early.Health(ctx); err != nil {
		t.Errorf("with a password that nobody asks for: %v", err)
	}
	raw, err := clientv3.NewFromURL(p.url())
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
	s := connect(t, etcd.Config{Endpoints: []string{p.url()}, User: "root", Password: "secret"})
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
	p.stop(t, syscall.SIGTERM) // forgets the tokens it has given out
	p.start(t)
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
		"no user":        {Endpoints: []string{p.url()}},
		"wrong password": {Endpoints: []string{p.url()}, User: "root", Password: "guess"},
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
	p.start(t)
	s := connect(t, etcd.Config{Endpoints: []string{"http://" + freePort(t), p.url(), "http://" + freePort(t)}})
	for range 20 {
		if _, err := s.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put("/a", nil)}}); err != nil {
			t.Fatal(err)
		}
	}
}
