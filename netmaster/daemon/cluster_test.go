package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/version"
)

// stub is the Controller of these tests. It writes under the fence, so that an answer
// proves a leadership.
type stub struct {
	name  string
	ctx   context.Context
	store objdb.Store
	lead  objdb.Leadership
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch r.URL.Path {
	case "/api/v1/panic/":
		panic("as asked")
	case "/api/v1/slow/":
		time.Sleep(200 * time.Millisecond)
	case "/api/v1/echo/":
		fmt.Fprintf(w, "%s %s %s %s %s", s.name, r.Method, r.URL.RequestURI(), r.Header.Get("X-Auth-Token"), body)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := s.write(ctx, r.URL.Path); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, s.name)
}

func (s *stub) Wait() {}

func (s *stub) write(ctx context.Context, key string) error {
	_, err := s.store.Commit(ctx, objdb.Txn{If: []objdb.Cmp{s.lead.Fence()}, Then: []objdb.Op{objdb.Put("/written"+key, []byte(s.name))}})
	return err
}

// master is one netmaster of a test's cluster.
type master struct {
	name, addr string
	open       func(context.Context) (objdb.Store, error)

	stop    context.CancelFunc
	stopped chan error

	mu    sync.Mutex
	terms []*stub
	fail  error // what NewController is to return
}

func (m *master) controllers() []*stub {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*stub(nil), m.terms...)
}

func (m *master) newController(ctx context.Context, store objdb.Store, lead objdb.Leadership) (daemon.Controller, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	s := &stub{name: m.name, ctx: ctx, store: store, lead: lead}
	if err := s.write(ctx, "/begin"); err != nil {
		return nil, err
	}
	m.terms = append(m.terms, s)
	return s, nil
}

// start runs the master on its address, a new one at first.
func (m *master) start(t *testing.T, lease time.Duration) {
	t.Helper()
	if m.addr == "" {
		m.addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.Addr().String()
	log := logrus.New()
	log.SetOutput(testWriter{t, m.name})
	d, err := daemon.New(daemon.Config{
		Listeners: []net.Listener{l}, Address: m.addr, OpenStore: m.open,
		NewController: m.newController, Lease: lease, Log: log, Version: version.Info{Version: "1.2.3"},
		Page: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s has %s", m.name, r.URL.Path) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop, m.stopped = cancel, make(chan error, 1)
	go func() { m.stopped <- d.Run(ctx) }()
	t.Cleanup(func() { m.halt(t) })
}

// halt stops the master in order, and returns how long that took.
func (m *master) halt(t *testing.T) time.Duration {
	t.Helper()
	if m.stop == nil {
		return 0
	}
	began := time.Now()
	m.stop()
	m.stop = nil
	if err := <-m.stopped; err != nil {
		t.Errorf("%s: Run = %v", m.name, err)
	}
	return time.Since(began)
}

func (m *master) leads(t *testing.T) bool {
	t.Helper()
	_, body := m.get(t, "/metrics")
	return strings.Contains(body, "\ncontiv_netmaster_leader 1\n")
}

func (m *master) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return m.do(t, http.MethodGet, path, "")
}

// client keeps no connections, so that none outlives a master.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

func (m *master) do(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+m.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", "token")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(out)
}

type testWriter struct {
	t    testing.TB
	name string
}

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s %s", w.name, strings.TrimSpace(string(p)))
	return len(p), nil
}

// theLeader waits for one leader among masters.
func theLeader(t *testing.T, masters ...*master) *master {
	t.Helper()
	var leader *master
	eventually.True(t, "one leader", func() bool {
		n := 0
		for _, m := range masters {
			if m.leads(t) {
				leader, n = m, n+1
			}
		}
		return n == 1
	})
	return leader
}

// wantFenced checks that what a former Controller still tries to write fails.
func wantFenced(t *testing.T, s *stub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	if err := s.write(ctx, "/late"); !errors.Is(err, objdb.ErrCompareFailed) && !errs.Is(err, errs.Unavailable) {
		t.Errorf("a former leader's write: %v", err)
	}
	select {
	case <-s.ctx.Done():
	default:
		t.Error("the context of a term that is over has not ended")
	}
}
