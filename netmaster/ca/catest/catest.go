// Package catest runs certificate authorities for tests: netmasters that serve nothing else,
// over TLS on the loopback.
package catest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/tlsport"
)

// Master is a netmaster as far as certificates go.
type Master struct {
	CA        *ca.CA
	Addr, URL string
	t         testing.TB
	stop      func()
}

// Log returns a logger for a test, that is quiet, and what it has logged.
func Log() (*logrus.Logger, *Lines) {
	log, lines := logrus.New(), &Lines{}
	log.SetOutput(lines)
	log.SetLevel(logrus.DebugLevel)
	return log, lines
}

// Lines is what has been logged. Safe for concurrent use.
type Lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Port reserves an address.
func Port(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Start runs a netmaster on a listener until the test ends, or Stop. Dir and Log of cfg may
// be empty. The store may be nil.
func Start(t testing.TB, l net.Listener, cfg ca.Config, store objdb.Store) *Master {
	t.Helper()
	m := &Master{Addr: l.Addr().String(), URL: "https://" + l.Addr().String(), t: t}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Log == nil {
		cfg.Log, _ = Log()
	}
	cfg.Name = m.Addr
	var err error
	if m.CA, err = ca.Open(t.Context(), cfg); err != nil {
		_ = l.Close()
		t.Fatal(err)
	}
	if store != nil {
		m.CA.SetStore(store)
	}
	creds := m.CA.Credentials()
	secure := tlsport.Listen(l, tlsport.Config{
		Mode: tlsport.Require, TLS: pki.ServerConfig(creds, pki.CertificateOptional), Credentials: creds,
	})
	web := &http.Server{Handler: Identify(m.CA.Handler()), ErrorLog: stdlog.New(io.Discard, "", 0)}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = web.Serve(secure) })
	done.Go(func() { _ = m.CA.Run(ctx) })
	m.stop = sync.OnceFunc(func() {
		cancel()
		_ = web.Close()
		_ = secure.Close()
		done.Wait()
	})
	t.Cleanup(m.stop)
	return m
}

// Stop ends the netmaster.
func (m *Master) Stop() { m.stop() }

// Identify says who asks by the certificate, and "ping" to GET /ping.
func Identify(next http.Handler) http.Handler {
	kinds := map[pki.Unit]identity.Kind{pki.UnitAgent: identity.Host, pki.UnitMaster: identity.Master, pki.UnitMonitor: identity.Monitor}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := identity.Identity{Kind: identity.Anonymous}
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			peer := pki.PeerOf(r.TLS.PeerCertificates[0])
			id = identity.Identity{Kind: kinds[peer.Unit], Name: peer.Name, How: "certificate"}
		}
		if r.URL.Path == "/ping" {
			_, _ = io.WriteString(w, id.String())
			return
		}
		next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
	})
}

// As makes a request with an identity, past all listeners, and reads the answer into v, which
// may be nil. It returns the status and the answer's text.
func (m *Master) As(id identity.Identity, method, path string, body, v any) (int, string) {
	m.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(identity.With(m.t.Context(), id), method, path, bytes.NewReader(text))
	m.CA.Handler().ServeHTTP(w, r)
	if v != nil && w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			m.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return w.Code, w.Body.String()
}

// Root makes a request as root, which must succeed.
func (m *Master) Root(method, path string, body, v any) {
	m.t.Helper()
	if code, text := m.As(identity.Identity{Kind: identity.Root, Name: "root"}, method, path, body, v); code != http.StatusOK {
		m.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
}
