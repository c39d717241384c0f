package events_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
)

// asAdmin serves as a listener does that knows who asks.
func asAdmin(h http.Handler) http.Handler {
	return as(identity.Identity{Kind: identity.Root, Name: "root"}, h)
}

func as(id identity.Identity, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
	})
}

// start runs a hub over a store and serves it.
func start(t *testing.T, store objdb.Store, cfg events.Config) string {
	t.Helper()
	hub := run(t, store, cfg)
	s := httptest.NewServer(asAdmin(hub))
	t.Cleanup(s.Close)
	return s.URL + events.Path
}

// run runs a hub and waits until it knows the store; it ends with the test.
func run(t *testing.T, store objdb.Store, cfg events.Config) *events.Hub {
	t.Helper()
	// Unless a test is about time, none passes, however slow the machine is.
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = time.Hour
	}
	cfg.Patience = time.Hour
	hub := events.NewHub(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		hub.Run(ctx, store)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	<-hub.Ready()
	return hub
}

// put stores objects in one transaction: "kind/key" with a version.
func put(t *testing.T, store objdb.Store, version int, names ...string) {
	t.Helper()
	var txn objdb.Txn
	for _, name := range names {
		txn.Then = append(txn.Then, objdb.Put(state.ModelRoot+name, fmt.Appendf(nil, `{"v": %d}`, version)))
	}
	commit(t, store, txn)
}

func remove(t *testing.T, store objdb.Store, name string) {
	t.Helper()
	commit(t, store, objdb.Txn{Then: []objdb.Op{objdb.Delete(state.ModelRoot + name)}})
}

func commit(t *testing.T, store objdb.Store, txn objdb.Txn) {
	t.Helper()
	if _, err := store.Commit(context.Background(), txn); err != nil {
		t.Fatal(err)
	}
}

// listener is a client that reads a stream event by event.
type listener struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Reader
}

func listen(t *testing.T, url, lastID string) *listener {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%s: %s, content type %q", url, resp.Status, got)
	}
	return &listener{t: t, resp: resp, in: bufio.NewReader(resp.Body)}
}

// next returns the text of the next event that is no comment, as it is on the wire.
func (l *listener) next() string {
	l.t.Helper()
	for {
		var text strings.Builder
		for {
			line, err := l.in.ReadString('\n')
			if err != nil {
				l.t.Fatalf("the stream ended: %v", err)
			}
			if line == "\n" {
				break
			}
			text.WriteString(line)
		}
		if !strings.HasPrefix(text.String(), ":") {
			return text.String()
		}
	}
}

func (l *listener) expect(want ...string) {
	l.t.Helper()
	for _, w := range want {
		if got := l.next(); got != w {
			l.t.Fatalf("got\n%swant\n%s", got, w)
		}
	}
}

func reset(id int, objects string) string {
	return fmt.Sprintf("event: reset\nid: %d\ndata: {\"event\":\"reset\",\"revision\":%d,\"objects\":[%s]}\n", id, id, objects)
}

// event is an event of one object; id 0 is none.
func event(what string, id int, object string) string {
	text, rev := "event: "+what+"\n", ""
	if id != 0 {
		text += fmt.Sprintf("id: %d\n", id)
		rev = fmt.Sprintf(`"revision":%d,`, id)
	}
	return text + fmt.Sprintf("data: {\"event\":%q,%s\"objects\":[%s]}\n", what, rev, object)
}

func object(kind, key string, version int) string {
	if version == 0 {
		return fmt.Sprintf(`{"kind":%q,"key":%q}`, kind, key)
	}
	return fmt.Sprintf(`{"kind":%q,"key":%q,"object":{"v":%d}}`, kind, key, version)
}

// TestStream follows a stream from its start, another one of some kinds only, and
// others that go on where the first was.
func TestStream(t *testing.T) {
	store := memory.New()
	put(t, store, 1, "network/t:a", "tenant/t", "junk/x", "nothing") // revision 2
	url := start(t, store, events.Config{})

	all, some := listen(t, url, ""), listen(t, url+"/?kind=policy,tenant&kind=rule", "")
	all.expect(reset(2, object("network", "t:a", 1)+","+object("tenant", "t", 1)))
	some.expect(reset(2, object("tenant", "t", 1)))

	put(t, store, 2, "network/t:a", "policy/t:p", "rule/t:p:1") // 3
	remove(t, store, "tenant/t")                                // 4
	put(t, store, 1, "junk/x")                                  // 5: nothing of ours
	commit(t, store, objdb.Txn{Then: []objdb.Op{objdb.Put(state.ModelRoot+"policy/t:q", []byte("{")), objdb.Put(state.ModelRoot+"network/t:b", []byte("{}"))}})
	put(t, store, 3, "tenant/t") // 7
	first := []string{
		event("changed", 0, object("network", "t:a", 2)),
		event("added", 0, object("policy", "t:p", 2)),
		event("added", 3, object("rule", "t:p:1", 2)),
	}
	rest := []string{
		event("removed", 4, object("tenant", "t", 0)),
		event("added", 6, `{"kind":"network","key":"t:b","object":{}}`),
		event("added", 7, object("tenant", "t", 3)),
	}
	all.expect(first...)
	all.expect(rest...)
	some.expect(first[1], first[2], rest[0], rest[2])

	listen(t, url, "3").expect(rest...)
	listen(t, url+"?since=4", "").expect(rest[1:]...)
	listen(t, url+"?since=4", "3").expect(rest...) // the header is newer than the address
	listen(t, url+"?kind=tenant", "2").expect(rest[0], rest[2])
	everything := object("network", "t:a", 2) + `,{"kind":"network","key":"t:b","object":{}},` + object("policy", "t:p", 2) + "," +
		object("rule", "t:p:1", 2) + "," + object("tenant", "t", 3)
	listen(t, url, "99").expect(reset(7, everything)) // of a future nobody here knows of
	listen(t, url, "1").expect(reset(7, everything))  // before this hub began
}

// TestForgotten: who comes back later than anybody remembers is told everything.
func TestForgotten(t *testing.T) {
	for name, cfg := range map[string]events.Config{"batches": {MaxBatches: 2}, "bytes": {MaxBytes: 2 * len(state.ModelRoot+`tenant/t{"v": 1}`)}} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			url := start(t, store, cfg)
			witness := listen(t, url, "")
			witness.expect(reset(1, ""))
			for v := 1; v <= 4; v++ { // revisions 2 … 5
				put(t, store, v, "tenant/t")
				what := map[bool]string{true: "added", false: "changed"}[v == 1]
				witness.expect(event(what, v+1, object("tenant", "t", v)))
			}
			listen(t, url, "3").expect(event("changed", 4, object("tenant", "t", 3)), event("changed", 5, object("tenant", "t", 4)))
			listen(t, url, "2").expect(reset(5, object("tenant", "t", 4)))
		})
	}
}

// TestResync: when the store itself has lost the changes, everybody is told everything.
func TestResync(t *testing.T) {
	store := memory.New()
	url := start(t, store, events.Config{})
	l := listen(t, url, "")
	l.expect(reset(1, ""))
	put(t, store, 1, "tenant/t")
	l.expect(event("added", 2, object("tenant", "t", 1)))
	store.Resync()
	l.expect(reset(2, object("tenant", "t", 1)))
}

// stuck is a client that does not read until it is let go, and the answer it gets.
type stuck struct {
	*httptest.ResponseRecorder
	writing chan struct{} // gets one for each write that begins
	release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.release
	return s.ResponseRecorder.Write(p)
}

// TestSlowClient: a client that does not read keeps nobody up and costs no memory; when
// it reads again it is told everything.
func TestSlowClient(t *testing.T) {
	store := memory.New()
	hub := run(t, store, events.Config{MaxBatches: 3})
	s := &stuck{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), release: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		asAdmin(hub).ServeHTTP(s, httptest.NewRequestWithContext(ctx, http.MethodGet, events.Path, nil))
	}()
	<-s.writing // the first reset

	server := httptest.NewServer(asAdmin(hub))
	t.Cleanup(server.Close)
	witness := listen(t, server.URL, "")
	witness.expect(reset(1, ""))
	for v := 1; v <= 10; v++ {
		put(t, store, v, "tenant/t")
		witness.next()
	}
	s.release <- struct{}{}
	<-s.writing // what it missed
	s.release <- struct{}{}
	put(t, store, 11, "tenant/t")
	<-s.writing
	s.release <- struct{}{}
	cancel()
	<-done
	want := reset(1, "") + "\n" + reset(11, object("tenant", "t", 10)) + "\n" + event("changed", 12, object("tenant", "t", 11)) + "\n"
	if got := s.Body.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestHeartbeat: a quiet stream gives signs of life, and moves on past what its client
// does not want to know.
func TestHeartbeat(t *testing.T) {
	store := memory.New()
	url := start(t, store, events.Config{Heartbeat: time.Millisecond})
	l := listen(t, url+"?kind=rule", "")
	l.expect(reset(1, ""))
	if line, err := l.in.ReadString('\n'); line != ":\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if line, err := l.in.ReadString('\n'); line != "\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	put(t, store, 1, "tenant/t")
	l.expect("id: 2\n")
}

// TestRefused is what a hub answers when there is no stream.
func TestRefused(t *testing.T) {
	hub := run(t, memory.New(), events.Config{MaxStreams: 1})
	ask := func(h http.Handler, method, query, lastID string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, events.Path+query, nil)
		r.Header.Set("Last-Event-ID", lastID)
		asAdmin(h).ServeHTTP(w, r)
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	server := httptest.NewServer(asAdmin(hub))
	t.Cleanup(server.Close)
	listen(t, server.URL, "").next()
	for _, tc := range []struct {
		hub                   http.Handler
		method, query, lastID string
		code                  int
		text                  string
	}{
		{hub, "POST", "", "", 404, "404 page not found"},
		{hub, "GET", "?kind=networks", "", 500, `kind "networks" is none of aciGw, appProfile,`},
		{hub, "GET", "?kind=network,", "", 500, `kind "" is none of`},
		{hub, "GET", "?since=x", "", 500, `since "x" is not a revision: expected the id of an event`},
		{hub, "GET", "", "-1", 500, `Last-Event-ID "-1" is not a revision`},
		{hub, "GET", "?since=%zz", "", 500, `query: invalid URL escape "%zz"`},
		{hub, "GET", "", "", 503, "there are 1 streams already; try again later"},
		{events.NewHub(events.Config{}), "GET", "", "", 503, "the store is not connected; try again"},
	} {
		code, text := ask(tc.hub, tc.method, tc.query, tc.lastID)
		if code != tc.code || !strings.HasPrefix(text, tc.text) {
			t.Errorf("%s %s %s: %d %s, want %d %s", tc.method, tc.query, tc.lastID, code, text, tc.code, tc.text)
		}
	}
}

// TestEnd: the streams end with the hub.
func TestEnd(t *testing.T) {
	store := memory.New()
	hub := events.NewHub(events.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		hub.Run(ctx, store)
	}()
	<-hub.Ready()
	server := httptest.NewServer(asAdmin(hub))
	t.Cleanup(server.Close)
	l := listen(t, server.URL, "")
	l.expect(reset(1, ""))
	cancel()
	<-done
	if rest, err := l.in.ReadString('\n'); err == nil {
		t.Errorf("after the end: %q", rest)
	}
}
