package join_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/contiv/netplugin/netmaster/ca"
	"github.com/contiv/netplugin/netmaster/ca/catest"
	"github.com/contiv/netplugin/netplugin/join"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a netmaster with a store of its own.
func start(t *testing.T, cfg ca.Config) *catest.Master {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() { _ = store.Close() })
	return catest.Start(t, catest.Port(t), cfg, store)
}

// host is a host that can join.
type host struct {
	join.Config
	lines *catest.Lines
}

func newHost(t *testing.T, label string, masters ...*catest.Master) *host {
	t.Helper()
	dir := t.TempDir()
	log, lines := catest.Log()
	return &host{lines: lines, Config: join.Config{
		Dir: filepath.Join(dir, "tls"), Host: label, TokenFile: filepath.Join(dir, "token"), Log: log,
		Compare: 20 * time.Millisecond,
		Masters: func() []string {
			var urls []string
			for _, m := range masters {
				urls = append(urls, m.URL)
			}
			return urls
		},
	}}
}

// give puts a join token where the host looks for it.
func (h *host) give(t *testing.T, token string) {
	t.Helper()
	if err := os.WriteFile(h.TokenFile, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// try joins for at most limit.
func (h *host) try(t *testing.T, limit time.Duration) (*join.Member, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return join.Join(ctx, h.Config)
}

// up joins, and keeps the certificate fresh until the test ends or stop is called.
func (h *host) up(t *testing.T) (c *pki.Credentials, stop func()) {
	t.Helper()
	m, err := h.try(t, eventually.Scaled(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = m.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return m.Credentials(), stop
}

func newToken(t *testing.T, m *catest.Master, req securityapi.TokenRequest) string {
	t.Helper()
	var tok securityapi.Token
	m.Root(http.MethodPost, securityapi.PathTokens, req, &tok)
	return tok.Token
}

// ping makes a new connection to a netmaster, which answers who it takes the client for.
func ping(c *pki.Credentials, m *catest.Master) (string, error) {
	transport := &http.Transport{TLSClientConfig: pki.ClientConfig(c, pki.UnitMaster), DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Get(m.URL + "/ping")
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), errors.Join(err, resp.Body.Close())
}

// socket serves a netmaster's calls to root on a unix socket.
func socket(t *testing.T, m *catest.Master) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	root := identity.Identity{Kind: identity.Root, Name: "root", How: "socket"}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.CA.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), root)))
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close(); <-done })
	return path
}
