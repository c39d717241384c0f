package relay

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
)

func discard() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

func call(r http.Handler, path, body string) (int, string) {
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// agentAt serves a socket as an agent that echoes.
func agentAt(t *testing.T, socket string) (stop func()) {
	t.Helper()
	l, err := listenUnix(t, socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/NetworkDriver.Unknown" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + string(body)))
	})}
	go func() { _ = s.Serve(l) }()
	return func() { s.Close() }
}

func TestPassesOn(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	defer agentAt(t, socket)()
	r := New(Config{Agent: socket, Log: discard()})
	for path, want := range map[string]int{"/NetworkDriver.CreateEndpoint": 200, "/NetworkDriver.Unknown": 404} {
		if status, body := call(r, path, `{"a":1}`); status != want || body != "POST "+path+` {"a":1}` {
			t.Errorf("%s: %d %s, want %d and what the agent says", path, status, body, want)
		}
	}
}

// TestAnswersWhileAgentIsDown: removals succeed, creations fail, fixed replies need no
// agent. The relay waits once, not for every call.
func TestAnswersWhileAgentIsDown(t *testing.T) {
	r := New(Config{Agent: filepath.Join(t.TempDir(), "none.sock"), Patience: time.Millisecond, Log: discard(), Capabilities: cnm.Capabilities{Scope: "local"}})
	for path, want := range map[string]int{
		"/Plugin.Activate": 200, "/NetworkDriver.GetCapabilities": 200, "/IpamDriver.GetCapabilities": 200, "/IpamDriver.ReleasePool": 200,
		"/NetworkDriver.Leave": 200, "/NetworkDriver.DeleteEndpoint": 200, "/IpamDriver.ReleaseAddress": 200, "/NetworkDriver.DeleteNetwork": 200,
		"/NetworkDriver.CreateEndpoint": 500, "/NetworkDriver.Join": 500, "/IpamDriver.RequestAddress": 500, "/IpamDriver.RequestPool": 500,
		"/NetworkDriver.CreateNetwork": 500,
	} {
		status, body := call(r, path, `{}`)
		var e cnm.Error
		if err := json.Unmarshal([]byte(body), &e); err != nil || status != want || (want == 500) != (e.Err != "" && e.Err == e.Error) {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
}

// TestWaitsForAnAgentThatComes: a call made before the agent starts is answered by it.
func TestWaitsForAnAgentThatComes(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	r := New(Config{Agent: socket, Patience: time.Hour, Log: discard()})
	answered := make(chan string, 1)
	go func() {
		_, body := call(r, "/NetworkDriver.CreateEndpoint", `{}`)
		answered <- body
	}()
	for r.unreachableSince().IsZero() { // until the call has reached nobody
		time.Sleep(time.Millisecond)
	}
	defer agentAt(t, socket)()
	if body := <-answered; !strings.HasPrefix(body, "POST ") {
		t.Errorf("answered %s, want the agent's answer", body)
	}
	if !r.unreachableSince().IsZero() {
		t.Error("the agent is still taken to be unreachable")
	}
}

// TestCallerMayGiveUp: the relay does not wait for an Engine that disconnects.
func TestCallerMayGiveUp(t *testing.T) {
	r := New(Config{Agent: filepath.Join(t.TempDir(), "none.sock"), Patience: time.Hour, Log: discard()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/NetworkDriver.Join", strings.NewReader("{}")).WithContext(ctx))
	}()
	cancel()
	<-done
}

// TestAnswersForAnAgentThatHangs: an agent that accepts calls and does not answer is given
// up.
func TestAnswersForAnAgentThatHangs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	l, err := listenUnix(t, socket) // takes connections, reads nothing
	if err != nil {
		t.Fatal(err)
	}
	r := New(Config{Agent: socket, Limit: time.Millisecond, Patience: time.Hour, Log: discard()})
	for path, want := range map[string]int{"/NetworkDriver.DeleteEndpoint": 200, "/NetworkDriver.Join": 500, "/IpamDriver.RequestAddress": 500} {
		if status, body := call(r, path, `{}`); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	l.Close()
}

// TestTellsWhatIsOwed: an agent that was given up is called again when it is back, after it
// was sent the removals in order.
func TestTellsWhatIsOwed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	r := New(Config{Agent: socket, Patience: time.Millisecond, Log: discard()})
	for _, c := range [][2]string{
		{"/NetworkDriver.Join", "a"},
		{"/NetworkDriver.Leave", "b"},
		{"/NetworkDriver.DeleteEndpoint", "c"},
		{"/IpamDriver.ReleaseAddress", "d"},
		{"/NetworkDriver.DeleteNetwork", "e"},
	} {
		call(r, c[0], c[1])
	}
	heard := make(chan string, 100)
	l, err := listenUnix(t, socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		heard <- req.URL.Path + " " + string(body)
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for _, want := range []string{"/Plugin.Activate ", "/NetworkDriver.DeleteEndpoint c", "/IpamDriver.ReleaseAddress d", "/NetworkDriver.DeleteNetwork e"} {
		if got := <-heard; got != want {
			t.Errorf("the agent hears %q, want %q", got, want)
		}
	}
	for r.givenUp() {
		time.Sleep(time.Millisecond)
	}
	if status, _ := call(r, "/NetworkDriver.Join", "f"); status != http.StatusOK {
		t.Errorf("a call when the agent is back: %d", status)
	}
	if got := <-heard; got != "/NetworkDriver.Join f" {
		t.Errorf("the agent hears %q, want the call", got)
	}
}

// TestRepeatsACallThatBroke: an agent that ends during a call gets it again when it is
// back.
func TestRepeatsACallThatBroke(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	l, err := listenUnix(t, socket)
	if err != nil {
		t.Fatal(err)
	}
	r := New(Config{Agent: socket, Patience: time.Hour, Log: discard()})
	answered := make(chan string, 1)
	go func() {
		_, body := call(r, "/NetworkDriver.CreateEndpoint", "{}")
		answered <- body
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	l.Close()
	defer agentAt(t, socket)()
	if body := <-answered; body != "POST /NetworkDriver.CreateEndpoint {}" {
		t.Errorf("answered %s, want what the agent says when it is back", body)
	}
}

// TestCallersThatLeaveGiveNobodyUp: an agent that was unreachable while callers gave up
// early is called again when it is back, without anybody having waited for it.
func TestCallersThatLeaveGiveNobodyUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	r := New(Config{Agent: socket, Patience: time.Hour, Log: discard()})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/NetworkDriver.Join", nil).WithContext(ctx))
	}()
	for r.unreachableSince().IsZero() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-left
	r.cfg.Patience = 0 // as if that were long ago
	defer agentAt(t, socket)()
	if status, _ := call(r, "/NetworkDriver.Join", "{}"); status != http.StatusOK {
		t.Errorf("a call when the agent is back: %d", status)
	}
}
