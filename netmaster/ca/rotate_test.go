package ca_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
)

var secret = []byte(strings.Repeat("s", ca.SecretMin))

// renew gives a host its next certificate, as its agent does.
func renew(t *testing.T, m *catest.Master, c *pki.Credentials) {
	t.Helper()
	csr, key := request(t)
	var cert securityapi.Certificate
	if _, err := securityapi.Call(t.Context(), client(t, c), http.MethodPost, m.URL+securityapi.PathRenew, securityapi.RenewRequest{CSR: csr}, &cert); err != nil {
		t.Fatal(err)
	}
	if err := (pki.Stored{Cert: []byte(cert.Certificate), Key: key, Roots: []byte(cert.Roots)}).Use(c); err != nil {
		t.Fatal(err)
	}
}

func show(t *testing.T, m *catest.Master) securityapi.Authority {
	t.Helper()
	var s securityapi.Status
	m.Root(http.MethodGet, securityapi.PathStatus, nil, &s)
	return s.Authority
}

// TestRotation: under handshakes all the time, between hosts and netmasters that know of the
// new authority at different times, none fails; when all have renewed the old authority is
// void, by itself.
func TestRotation(t *testing.T) {
	store := newStore(t)
	settle := 200 * time.Millisecond
	first := catest.Start(t, catest.Port(t), ca.Config{Secret: secret, Settle: settle}, store)
	second := catest.Start(t, catest.Port(t), ca.Config{Secret: secret, Settle: settle, Join: []string{first.URL}}, store.Connect())
	before := first.CA.Hash()
	hosts := []*pki.Credentials{member(t, first, "node1"), member(t, first, "node2")}

	var failed, made atomic.Int64
	var load sync.WaitGroup
	stop := make(chan struct{})
	endLoad := sync.OnceFunc(func() { close(stop); load.Wait() })
	defer endLoad()
	for _, m := range []*catest.Master{first, second} {
		for _, c := range hosts {
			load.Go(func() {
				h := client(t, c)
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := get(h, m.URL+"/ping"); err != nil {
						failed.Add(1)
						t.Errorf("handshake: %v", err)
						return
					}
					made.Add(1)
				}
			})
		}
	}
	m0 := made.Load()
	first.Root(http.MethodPost, securityapi.PathRotate, struct{}{}, nil)
	eventually.True(t, "both netmasters have the new authority", func() bool {
		return first.CA.Hash() != before && second.CA.Hash() == first.CA.Hash()
	})
	if a := show(t, first); !a.Rotating || len(a.Former) != 1 || a.Former[0] != before {
		t.Errorf("in the rotation: %+v", a)
	}
	if keys := second.CA.Keys(); len(keys) != 2 || keys[0].ID != first.CA.Keys()[0].ID {
		t.Errorf("the second netmaster has %d keys, expected 2, the new one first", len(keys))
	}
	renew(t, second, hosts[0])
	eventually.True(t, "node2 alone is waited for", func() bool { w := show(t, first).Waiting; return len(w) == 1 && w[0] == "node2" })
	if code, _ := first.As(identity.Identity{Kind: identity.Root}, http.MethodPost, securityapi.PathRotate, struct{}{}, nil); code != http.StatusConflict {
		t.Errorf("a second rotation before the end of the first: %d, expected 409", code)
	}
	renew(t, first, hosts[1])
	eventually.True(t, "the rotation ends", func() bool { return !show(t, first).Rotating && !show(t, second).Rotating })
	m1 := made.Load()
	eventually.True(t, "there is load", func() bool { return made.Load() > m1+10 })
	endLoad()
	if failed.Load() != 0 || m1 <= m0 {
		t.Errorf("%d of %d handshakes failed", failed.Load(), made.Load())
	}
	t.Logf("%d handshakes, %d failed", made.Load(), failed.Load())
}

// TestRotationFinished: who has not renewed by the end is out. That is what --finish is for.
func TestRotationFinished(t *testing.T) {
	m := start(t, ca.Config{})
	root := identity.Identity{Kind: identity.Root}
	if code, _ := m.As(root, http.MethodPost, securityapi.PathRotate, securityapi.RotateRequest{Finish: true}, nil); code != http.StatusConflict {
		t.Errorf("finishing nothing: %d, expected 409", code)
	}
	late, good := member(t, m, "late"), member(t, m, "good")
	m.Root(http.MethodPost, securityapi.PathRotate, struct{}{}, nil)
	renew(t, m, good)
	if err := get(client(t, late), m.URL+"/ping"); err != nil {
		t.Errorf("before the end: %v", err)
	}
	m.Root(http.MethodPost, securityapi.PathRotate, securityapi.RotateRequest{Finish: true}, nil)
	if get(client(t, late), m.URL+"/ping") == nil {
		t.Error("a certificate of the former authority still counts")
	}
	if err := get(client(t, good), m.URL+"/ping"); err != nil {
		t.Errorf("a certificate of the new authority: %v", err)
	}
}

// TestRotationInterrupted: a netmaster that ends between the store's record and its own disk
// goes on where it was.
func TestRotationInterrupted(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	m := catest.Start(t, catest.Port(t), ca.Config{Dir: dir}, store)
	before := m.CA.Hash()
	eventually.True(t, "the record is there", func() bool { _, err := store.Get(t.Context(), "/contiv.io/auth/ca"); return err == nil })
	// The store applies the rotation, and the netmaster is told that nothing is known.
	store.OnCommit(func(objdb.Txn) memory.Fault { return memory.Fault{After: errors.New("connection lost")} })
	if code, text := m.As(identity.Identity{Kind: identity.Root}, http.MethodPost, securityapi.PathRotate, struct{}{}, nil); code == http.StatusOK {
		t.Fatalf("%d %s, expected a failure", code, text)
	}
	store.OnCommit(nil)
	m.Stop()
	m = catest.Start(t, catest.Port(t), ca.Config{Dir: dir}, store)
	eventually.True(t, "the new authority signs", func() bool { return m.CA.Hash() != before && show(t, m).Problem == "" })
	eventually.True(t, "ca-next.json is removed", func() bool {
		_, err := os.Stat(filepath.Join(dir, "ca-next.json"))
		return errors.Is(err, os.ErrNotExist)
	})
}

// TestKeyLost: without the authority's key a netmaster says what to do; with a new authority
// hosts still believe it, and come over one by one.
func TestKeyLost(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	l := catest.Port(t)
	m := catest.Start(t, l, ca.Config{Dir: dir, Settle: 100 * time.Millisecond}, store)
	addr := m.Addr
	host := member(t, m, "node1")
	m.Stop()
	if _, err := ca.StartOver(dir); err == nil || !strings.Contains(err.Error(), "has the certificate authority") {
		t.Errorf("starting over with an authority that is there: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.json")); err != nil {
		t.Fatal(err)
	}
	log, _ := catest.Log()
	if _, err := ca.Open(t.Context(), ca.Config{Dir: dir, Name: addr, Log: log}); err == nil || !strings.Contains(err.Error(), "netmaster ca new --tls-dir "+dir) {
		t.Fatalf("opening without the key: %v", err)
	}
	hash, err := ca.StartOver(dir)
	if err != nil {
		t.Fatal(err)
	}
	l = listenAt(t, addr)
	m = catest.Start(t, l, ca.Config{Dir: dir, Settle: 100 * time.Millisecond}, store)
	if m.CA.Hash() != hash {
		t.Errorf("authority %s, expected %s", m.CA.Hash(), hash)
	}
	if err := get(client(t, host), m.URL+"/ping"); err != nil {
		t.Fatalf("a host with a certificate of the lost authority: %v", err)
	}
	renew(t, m, host)
	if err := get(client(t, host), m.URL+"/ping"); err != nil {
		t.Fatalf("the host after it has renewed: %v", err)
	}
	eventually.True(t, "the lost authority is void", func() bool { return !show(t, m).Rotating })
	if err := get(client(t, host), m.URL+"/ping"); err != nil {
		t.Fatalf("the host at the end: %v", err)
	}
}

// TestDamaged: half-written files are told from missing ones, with what to do.
func TestDamaged(t *testing.T) {
	store, dir := newStore(t), t.TempDir()
	m := catest.Start(t, catest.Port(t), ca.Config{Dir: dir}, store)
	m.Stop()
	path := filepath.Join(dir, "ca.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := catest.Log()
	for _, n := range []int{0, 1, len(text) / 2, len(text) - 2} {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ca.Open(t.Context(), ca.Config{Dir: dir, Name: "m", Log: log}); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("with %d of %d bytes: %v", n, len(text), err)
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// The netmaster's own certificate is made again by itself.
	if err := os.Truncate(filepath.Join(dir, "identity.pem"), 100); err != nil {
		t.Fatal(err)
	}
	log, lines := catest.Log()
	c, err := ca.Open(t.Context(), ca.Config{Dir: dir, Name: "m", Log: log})
	if err != nil || c.Credentials().Leaf() == nil {
		t.Errorf("with a damaged certificate: %v", err)
	}
	if !strings.Contains(lines.String(), "damaged") {
		t.Errorf("the log does not say so: %s", lines)
	}
	for name, mode := range map[string]os.FileMode{"ca.json": 0o600, "identity.pem": 0o600, "roots.pem": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, expected mode %o", name, info.Mode(), err, mode)
		}
	}
}

// TestRotationByHand: where members of a store have to start again first, no rotation ends by
// itself.
func TestRotationByHand(t *testing.T) {
	settle := 20 * time.Millisecond
	held, free := start(t, ca.Config{Settle: settle, FinishByHand: true}), start(t, ca.Config{Settle: settle})
	for _, m := range []*catest.Master{held, free} {
		m.Root(http.MethodPost, securityapi.PathRotate, struct{}{}, nil)
	}
	eventually.True(t, "the other rotation has ended", func() bool { return !show(t, free).Rotating })
	eventually.True(t, "nobody is waited for", func() bool { return len(show(t, held).Waiting) == 0 })
	if a := show(t, held); !a.Rotating || !a.ByHand {
		t.Errorf("%+v", a)
	}
	held.Root(http.MethodPost, securityapi.PathRotate, securityapi.RotateRequest{Finish: true}, nil)
	if a := show(t, held); a.Rotating {
		t.Errorf("after it was finished by hand: %+v", a)
	}
}
