package ca_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/utils/pki"
)

// open opens an authority that joins, for at most limit.
func open(t *testing.T, limit time.Duration, cfg ca.Config) (*ca.CA, string, error) {
	t.Helper()
	log, lines := catest.Log()
	cfg.Dir, cfg.Name, cfg.Log = t.TempDir(), "m2", log
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c, err := ca.Open(ctx, cfg)
	if _, serr := os.Stat(filepath.Join(cfg.Dir, "ca.json")); err != nil && !errors.Is(serr, os.ErrNotExist) {
		t.Errorf("after %v there is an authority on disk", err)
	}
	return c, lines.String(), err
}

// TestMastersStartAtOnce: three without a store, the two that join before the first one serves.
func TestMastersStartAtOnce(t *testing.T) {
	l := catest.Port(t)
	url := "https://" + l.Addr().String()
	opened := make(chan *ca.CA, 2)
	for range 2 {
		log, _ := catest.Log()
		cfg := ca.Config{Dir: t.TempDir(), Name: "m", Log: log, Secret: secret, Join: []string{"https://127.0.0.1:1", url}}
		go func() {
			c, err := ca.Open(t.Context(), cfg)
			if err != nil {
				t.Error(err)
			}
			opened <- c
		}()
	}
	first := catest.Start(t, l, ca.Config{Secret: secret}, nil)
	for range 2 {
		c := <-opened
		if c == nil {
			continue
		}
		if c.Hash() != first.CA.Hash() || len(c.Keys()) != 1 || !bytes.Equal(c.Keys()[0].Secret, first.CA.Keys()[0].Secret) {
			t.Error("a netmaster that joined has another authority or another key")
		}
		if peer, err := first.CA.Credentials().Verify([]*x509.Certificate{c.Credentials().Leaf()}, pki.UnitMaster); err != nil {
			t.Errorf("%s: %v", peer, err)
		}
	}
	// Without a store, what needs it says so.
	if code, text := join(t, first, "abc", "def", "node1"); code != http.StatusServiceUnavailable {
		t.Errorf("join without a store: %d %s, expected 503", code, text)
	}
}

// TestSameListForAll: all netmasters have the same list. The first of it makes the authority,
// gets it back from another one when its disk is lost, and makes none while one refuses it.
func TestSameListForAll(t *testing.T) {
	a, b := catest.Port(t), catest.Port(t)
	list := []string{"https://" + a.Addr().String(), "https://" + b.Addr().String()}
	config := func(l net.Listener) ca.Config {
		return ca.Config{Name: l.Addr().String(), Secret: secret, Join: list}
	}
	b.Close() // nobody is there yet
	first := catest.Start(t, a, config(a), nil)
	b, err := net.Listen("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	second := catest.Start(t, b, config(b), nil)
	if second.CA.Hash() != first.CA.Hash() {
		t.Error("the second netmaster has another authority")
	}
	other := first.URL
	list = []string{"https://m2", other} // m2 is what open calls its netmaster
	c, _, err := open(t, 10*time.Second, ca.Config{Secret: secret, Join: list})
	if err != nil || c.Hash() != first.CA.Hash() {
		t.Errorf("the first one with an empty disk: %v", err)
	}
	_, lines, err := open(t, 300*time.Millisecond, ca.Config{Secret: []byte(strings.Repeat("x", ca.SecretMin)), Join: list})
	if err == nil || !strings.Contains(lines+err.Error(), "another --cluster-secret-file") {
		t.Errorf("the first one is refused by another: %v", err)
	}
}

func TestMasterJoinRefused(t *testing.T) {
	first := catest.Start(t, catest.Port(t), ca.Config{Secret: secret}, nil)
	closed := catest.Start(t, catest.Port(t), ca.Config{}, nil)
	for _, tt := range []struct {
		name, url, secret, says string
	}{
		{"wrong secret", first.URL, strings.Repeat("x", ca.SecretMin), "another --cluster-secret-file"},
		{"other side has none", closed.URL, string(secret), "no cluster secret"},
		{"plain", strings.Replace(first.URL, "https", "http", 1), string(secret), "https://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, lines, err := open(t, 300*time.Millisecond, ca.Config{Secret: []byte(tt.secret), Join: []string{tt.url}})
			if err == nil || !strings.Contains(err.Error()+lines, tt.says) {
				t.Errorf("%v, expected %q", err, tt.says)
			}
		})
	}
	if _, _, err := open(t, time.Second, ca.Config{Secret: []byte("short"), Join: []string{first.URL}}); err == nil || !strings.Contains(err.Error(), "at least 32") {
		t.Errorf("short secret: %v", err)
	}
	if _, _, err := open(t, time.Second, ca.Config{Join: []string{first.URL}}); err == nil || !strings.Contains(err.Error(), "--cluster-secret-file") {
		t.Errorf("no secret: %v", err)
	}
}

// TestMasterJoinOverTLS12: without TLS 1.3 there is no proof and no authority.
func TestMasterJoinOverTLS12(t *testing.T) {
	first := catest.Start(t, catest.Port(t), ca.Config{Secret: secret}, nil)
	h := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
	}}
	_, err := securityapi.Call(t.Context(), h, http.MethodPost, first.URL+securityapi.PathMasterJoin,
		securityapi.MasterJoinRequest{Proof: hex.EncodeToString(make([]byte, 32))}, new(securityapi.MasterJoinResponse))
	if err == nil || !strings.Contains(err.Error(), "TLS 1.3") {
		t.Errorf("%v, expected a word about TLS 1.3", err)
	}
}

// TestMasterInTheMiddle: a proxy with a certificate of its own between the two, which passes
// everything on, gets no authority, and the netmaster that joins none from it.
func TestMasterInTheMiddle(t *testing.T) {
	first := catest.Start(t, catest.Port(t), ca.Config{Secret: secret}, nil)
	middle := startProxy(t, first.Addr)
	_, lines, err := open(t, 500*time.Millisecond, ca.Config{Secret: secret, Join: []string{middle.url}})
	if err == nil || !strings.Contains(err.Error()+lines, "somebody stands between") {
		t.Errorf("joined through a proxy: %v\n%s", err, lines)
	}
	seen := middle.seen()
	if !strings.Contains(seen, securityapi.PathMasterJoin) || !strings.Contains(seen, "proof") {
		t.Fatalf("the proxy has not been used: %q", seen)
	}
	if strings.Contains(seen, "bundle") || strings.Contains(seen, "PRIVATE KEY") || strings.Contains(seen, string(secret)) {
		t.Error("the proxy has seen a secret")
	}
	// The same proxy is harmless only because of the proofs: straight, the same join works.
	if _, _, err := open(t, time.Minute, ca.Config{Secret: secret, Join: []string{first.URL}}); err != nil {
		t.Errorf("without the proxy: %v", err)
	}
}

// TestMasterImpostor: who answers without knowing the secret hands over no authority of its
// own, not even with the client's own proof sent back.
func TestMasterImpostor(t *testing.T) {
	other, err := pki.NewAuthority("impostor", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l := impostor(t, other, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req securityapi.MasterJoinRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		_ = json.NewEncoder(w).Encode(securityapi.MasterJoinResponse{Proof: req.Proof, Bundle: []byte("{}")})
	}))
	if _, lines, err := open(t, 300*time.Millisecond, ca.Config{Secret: secret, Join: []string{l}}); err == nil || !strings.Contains(err.Error()+lines, "another --cluster-secret-file") {
		t.Errorf("joined an impostor: %v", err)
	}
}

func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	write := func(text string, mode os.FileMode) {
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ca.ReadSecret(path); err == nil {
		t.Error("a missing file was read")
	}
	write(string(secret)+"\n", 0o600)
	if got, err := ca.ReadSecret(path); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("%q, %v", got, err)
	}
	write(string(secret), 0o644)
	if _, err := ca.ReadSecret(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by everybody: %v", err)
	}
	write("short", 0o600)
	if _, err := ca.ReadSecret(path); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("too short: %v", err)
	}
}

// impostor serves TLS with a certificate of another authority, and returns its URL.
func impostor(t *testing.T, other *pki.Authority, h http.Handler) string {
	t.Helper()
	l, cfg := catest.Port(t), impostorConfig(t, other)
	web := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(tls.NewListener(l, cfg)) }()
	t.Cleanup(func() { _ = web.Close(); <-done })
	return "https://" + l.Addr().String()
}

func impostorConfig(t *testing.T, other *pki.Authority) *tls.Config {
	t.Helper()
	cert, key, err := other.Issue(pki.Subject{Name: "m1", Unit: pki.UnitMaster}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// proxy ends TLS on both sides and reads along.
type proxy struct {
	url string
	mu  sync.Mutex
	log bytes.Buffer
}

func (p *proxy) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *proxy) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	other, err := pki.NewAuthority("proxy", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l := catest.Port(t)
	p, in := &proxy{url: "https://" + l.Addr().String()}, tls.NewListener(l, impostorConfig(t, other))
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.pass(c, target) })
		}
	})
	t.Cleanup(func() { _ = in.Close(); work.Wait() })
	return p
}

func (p *proxy) pass(c net.Conn, target string) {
	defer func() { _ = c.Close() }()
	out, err := tls.Dial("tcp", target, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(io.MultiWriter(out, p), c); _ = out.Close() })
	both.Go(func() { _, _ = io.Copy(io.MultiWriter(c, p), out); _ = c.Close() })
	both.Wait()
}
