package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	contiv "github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// three starts three masters on one store in memory.
func three(t *testing.T) (*memory.Store, []*master) {
	base := memory.New()
	var masters []*master
	for i := range 3 {
		m := &master{name: fmt.Sprintf("m%d", i), open: func(context.Context) (objdb.Store, error) { return base.Connect(), nil }}
		m.start(t, time.Minute)
		masters = append(masters, m)
	}
	return base, masters
}

// TestProxy: every master serves every request, by itself or through the leader,
// without changing it.
func TestProxy(t *testing.T) {
	_, masters := three(t)
	leader := theLeader(t, masters...)
	for _, m := range masters {
		code, body := m.do(t, http.MethodPost, "/api/v1/echo/?a=1;b&c=%zz", "the body")
		want := leader.name + " POST /api/v1/echo/?a=1;b&c=%zz token the body"
		if code != http.StatusOK || body != want {
			t.Errorf("%s: %d %q, want %q", m.name, code, body, want)
		}
		if code, body := m.get(t, "/api/v1//twice/%2F/"); code != http.StatusOK || body != leader.name {
			t.Errorf("%s: odd path: %d %q", m.name, code, body)
		}
		if code, body := m.do(t, http.MethodPost, "/api/v1/x/", strings.Repeat("x", 5<<20)); code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: a body of 5 MiB: %d %q", m.name, code, body)
		}
		if code, _ := m.get(t, "/api/v1/panic/"); code != http.StatusInternalServerError {
			t.Errorf("%s: after a panic: %d", m.name, code)
		}
		if code, _ := m.get(t, "/api/v1/x/"); code != http.StatusOK {
			t.Errorf("%s: after a panic, next request: %d", m.name, code)
		}
	}
}

func TestLocalAnswers(t *testing.T) {
	_, masters := three(t)
	leader := theLeader(t, masters...)
	for _, m := range masters {
		if _, body := m.get(t, "/version"); body != `{"GitCommit":"","Version":"1.2.3","BuildTime":""}`+"\n" {
			t.Errorf("%s: /version = %s", m.name, body)
		}
		role := objdb.RoleFollower
		if m == leader {
			role = objdb.RoleLeader
		}
		want := fmt.Sprintf(`{"current-state":%q,"leader-ip":%q,"local-ip":"127.0.0.1","netmaster-nodes":["127.0.0.1"],"netplugin-nodes":[]}`+"\n", role, leader.addr)
		eventually.True(t, "info is "+want, func() bool {
			_, body := m.get(t, "/info")
			return body == want
		})
		for _, path := range []string{"/healthz", "/readyz"} {
			eventually.True(t, m.name+" is well", func() bool {
				code, _ := m.get(t, path)
				return code == http.StatusOK
			})
		}
		for _, path := range []string{"/version", "/info", "/healthz", "/readyz", "/metrics"} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
				if code, body := m.do(t, method, path, ""); code != http.StatusNotFound || body != "404 page not found\n" {
					t.Errorf("%s: %s %s: %d %q", m.name, method, path, code, body)
				}
			}
		}
		for _, path := range []string{"/", "/ui", "/ui/", "/ui/app.js"} {
			if code, body := m.get(t, path); code != http.StatusOK || body != m.name+" has "+path {
				t.Errorf("%s: %s: %d %q", m.name, path, code, body)
			}
		}
		if _, body := m.get(t, "/metrics"); !strings.Contains(body, `contiv_netmaster_build_info{built="",commit="",version="1.2.3"} 1`) ||
			!strings.Contains(body, "contiv_netmaster_http_requests_total") {
			t.Errorf("%s: /metrics = %s", m.name, body)
		}
	}
}

// TestRegistry: every master is registered with its role, and gone when it has stopped.
func TestRegistry(t *testing.T) {
	base, masters := three(t)
	leader := theLeader(t, masters...)
	roles := func() map[string]string {
		kvs, _, err := base.List(t.Context(), state.ServiceRoot+"netmaster/")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, kv := range kvs {
			var i objdb.ServiceInfo
			if err := json.Unmarshal(kv.Value, &i); err != nil {
				t.Fatal(err)
			}
			out[strings.TrimPrefix(kv.Key, state.ServiceRoot+"netmaster/")] = i.Role
		}
		return out
	}
	want := map[string]string{}
	for _, m := range masters {
		want[m.addr] = objdb.RoleFollower
	}
	want[leader.addr] = objdb.RoleLeader
	eventually.True(t, "all are registered", func() bool { return cmp.Equal(roles(), want) })
	leader.halt(t)
	delete(want, leader.addr)
	rest := slices.DeleteFunc(masters, func(m *master) bool { return m == leader })
	want[theLeader(t, rest...).addr] = objdb.RoleLeader
	eventually.True(t, "the new roles are registered", func() bool { return cmp.Equal(roles(), want) })
}

// TestHandover: a leader that stops finishes what it has and hands over; clients of the
// others see no failure.
func TestHandover(t *testing.T) {
	_, masters := three(t)
	leader := theLeader(t, masters...)
	rest := slices.DeleteFunc(slices.Clone(masters), func(m *master) bool { return m == leader })

	slow := make(chan string, 1)
	go func() {
		code, body := leader.get(t, "/api/v1/slow/")
		slow <- fmt.Sprint(code, " ", body)
	}()
	time.Sleep(50 * time.Millisecond) // it is being served

	ctx, cancel := context.WithCancel(t.Context())
	var (
		wg     sync.WaitGroup
		served atomic.Int32
	)
	for _, m := range rest {
		wg.Go(func() {
			for ctx.Err() == nil {
				if code, body := m.get(t, "/api/v1/x/"); code != http.StatusOK {
					t.Errorf("%s: %d %s", m.name, code, body)
					return
				}
				served.Add(1)
			}
		})
	}
	took := leader.halt(t)
	t.Logf("stopped in %s", took.Round(time.Millisecond))
	if got, want := <-slow, "200 "+leader.name; got != want {
		t.Errorf("a request being served at the stop: %s, want %s", got, want)
	}
	next := theLeader(t, rest...)
	before := served.Load()
	eventually.True(t, "the others go on", func() bool { return served.Load() > before+10 })
	cancel()
	wg.Wait()
	wantFenced(t, leader.controllers()[0])
	if next == leader {
		t.Error("the leader that has stopped leads")
	}
}

// TestLeaseLost: a leader whose lease has ended stops leading, whoever is next.
func TestLeaseLost(t *testing.T) {
	base := memory.New()
	clients := make([]*memory.Store, 3)
	var masters []*master
	for i := range clients {
		clients[i] = base.Connect()
		m := &master{name: fmt.Sprintf("m%d", i), open: func(context.Context) (objdb.Store, error) { return clients[i], nil }}
		m.start(t, time.Minute)
		masters = append(masters, m)
	}
	for range 5 {
		leader := theLeader(t, masters...)
		terms := leader.controllers()
		clients[slices.Index(masters, leader)].ExpireAll()
		select {
		case <-terms[len(terms)-1].ctx.Done():
		case <-time.After(eventually.Scaled(30 * time.Second)):
			t.Fatal("the term goes on")
		}
		wantFenced(t, terms[len(terms)-1])
		theLeader(t, masters...)
		for _, m := range masters {
			if code, body := m.get(t, "/api/v1/x/"); code != http.StatusOK {
				t.Errorf("%s: %d %s", m.name, code, body)
			}
		}
	}
}

// TestLeftoverLock: a lock of our previous life, or of a master that is gone, is not
// taken for a leader, and a request is refused clearly.
func TestLeftoverLock(t *testing.T) {
	base := memory.New()
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) { return base.Connect(), nil }}
	m.start(t, time.Minute)
	theLeader(t, m)
	m.halt(t)
	put := func(addr string) {
		if _, err := base.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(state.LeaderKey, []byte(addr))}}); err != nil {
			t.Fatal(err)
		}
	}
	put(m.addr) // as after kill -9 of a master on the same address
	m.start(t, time.Minute)
	theLeader(t, m)
	m.halt(t)

	nobody := netxtest.FreeAddress(t)
	put(nobody)
	m.start(t, time.Minute)
	code, body := m.get(t, "/api/v1/x/")
	if want := "the leader " + nobody + " cannot be reached; try again\n"; code != http.StatusServiceUnavailable || body != want {
		t.Errorf("%d %q, want %q", code, body, want)
	}
}

// TestNoBall: two masters that take each other for the leader do not pass a request to
// and fro.
func TestNoBall(t *testing.T) {
	one, two := memory.New(), memory.New()
	a := &master{name: "a", open: func(context.Context) (objdb.Store, error) { return one, nil }}
	b := &master{name: "b", open: func(context.Context) (objdb.Store, error) { return two, nil }}
	a.fail, b.fail = errs.New(errs.Internal, "not now"), errs.New(errs.Internal, "not now")
	a.start(t, time.Minute)
	b.start(t, time.Minute)
	lie := func(s *memory.Store, addr string) {
		for _, op := range []objdb.Op{objdb.Delete(state.LeaderKey), objdb.Put(state.LeaderKey, []byte(addr))} {
			if _, err := s.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	lie(one, b.addr)
	lie(two, a.addr)
	eventually.True(t, "a is refused by b", func() bool {
		code, body := a.get(t, "/api/v1/x/")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "does not lead any more")
	})
}

// TestMuteLeader: a request that a leader took and never answers, because it was cut
// off, ends when there is another leader. That one answers what changes nothing.
func TestMuteLeader(t *testing.T) {
	t.Run(http.MethodPost, func(t *testing.T) {
		muteLeader(t, http.MethodPost, http.StatusServiceUnavailable, "may or may not have taken effect")
	})
	t.Run(http.MethodGet, func(t *testing.T) { muteLeader(t, http.MethodGet, http.StatusOK, "m") })
}

func muteLeader(t *testing.T, method string, status int, says string) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	taken := make(chan net.Conn, 1)
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			go func() { // followers knock, too
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err != nil || r.URL.Path != "/api/v1/x/" {
					conn.Close()
					return
				}
				taken <- conn
			}()
		}
	}()
	base := memory.New()
	put := objdb.Put(state.LeaderKey, []byte(mute.Addr().String()))
	if _, err := base.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{put}}); err != nil {
		t.Fatal(err)
	}
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) { return base.Connect(), nil }}
	m.start(t, time.Minute)
	type answer struct {
		code int
		body string
	}
	answered := make(chan answer, 1)
	go func() {
		code, body := m.do(t, method, "/api/v1/x/", "")
		answered <- answer{code, body}
	}()
	conn := <-taken
	defer conn.Close()
	if _, err := base.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(state.LeaderKey)}}); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.code != status || !strings.Contains(got.body, says) {
		t.Errorf("answer = %+v, want %d %s", got, status, says)
	}
	if code, body := m.get(t, "/api/v1/x/"); code != http.StatusOK {
		t.Errorf("next request: %d %s", code, body)
	}
}

// TestNotLoading: a model that cannot be loaded gives another one the chance, is said,
// and is tried again.
func TestNotLoading(t *testing.T) {
	base := memory.New()
	m := &master{name: "m", fail: errs.New(errs.Internal, "record broken"), open: func(context.Context) (objdb.Store, error) { return base.Connect(), nil }}
	m.start(t, time.Minute)
	eventually.True(t, "the reason is told", func() bool {
		code, body := m.get(t, "/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "load the model: record broken")
	})
	if code, body := m.get(t, "/info"); code != http.StatusInternalServerError || body != "Error getting master state\n" {
		t.Errorf("/info without a leader: %d %q", code, body)
	}
	m.mu.Lock()
	m.fail = nil
	m.mu.Unlock()
	theLeader(t, m)
}

// TestStoreComesLater: the listeners are open and say what is missing; an option that is
// wrong ends the daemon.
func TestStoreComesLater(t *testing.T) {
	base := memory.New()
	var there atomic.Bool
	m := &master{name: "m", open: func(context.Context) (objdb.Store, error) {
		if !there.Load() {
			return nil, errs.New(errs.Unavailable, "no store today")
		}
		return base.Connect(), nil
	}}
	m.start(t, time.Minute)
	eventually.True(t, "the reason is told", func() bool {
		code, body := m.get(t, "/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "the store is unavailable: no store today")
	})
	if code, body := m.get(t, "/api/v1/x/"); code != http.StatusServiceUnavailable || !strings.Contains(body, "no store today; try again") {
		t.Errorf("%d %q", code, body)
	}
	there.Store(true)
	theLeader(t, m)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(testWriter{t, "wrong"})
	d, err := daemon.New(daemon.Config{
		Listeners: []net.Listener{l}, Address: l.Addr().String(), Log: log,
		OpenStore: func(context.Context) (objdb.Store, error) { return nil, errs.New(errs.Invalid, "no such file") },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(t.Context()); !errs.Is(err, errs.Invalid) {
		t.Errorf("Run = %v, want the store's Invalid error", err)
	}
}

func TestListen(t *testing.T) {
	p, q := netxtest.FreePort(t), netxtest.FreePort(t)
	for name, tt := range map[string]struct {
		external, internal string
		want               int
	}{
		"same":               {"127.0.0.1:" + p, "127.0.0.1:" + p, 1},
		"all addresses":      {"0.0.0.0:" + p, "127.0.0.1:" + p, 1},
		"no host":            {":" + p, "127.0.0.1:" + p, 1},
		"another port":       {"0.0.0.0:" + p, "127.0.0.1:" + q, 2},
		"another address":    {"127.0.0.2:" + p, "127.0.0.1:" + p, 2},
		"not an address":     {"127.0.0.1:" + p, "127.0.0.1:99999", 0},
		"address in use":     {"127.0.0.1:" + p, "0.0.0.0:" + p, 0},
		"not ours to listen": {"192.0.2.1:" + p, "127.0.0.1:" + p, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ls, err := daemon.Listen(tt.external, tt.internal)
			for _, l := range ls {
				l.Close()
			}
			if len(ls) != tt.want || (err != nil) != (tt.want == 0) {
				t.Errorf("Listen = %d listeners, %v; want %d", len(ls), err, tt.want)
			}
		})
	}
}

func TestNewRefusesBadAddress(t *testing.T) {
	for _, addr := range []string{"", "host:1", "0.0.0.0:1", "10.0.0.1", "10.0.0.1:0"} {
		if _, err := daemon.New(daemon.Config{Address: addr}); !errs.Is(err, errs.Invalid) {
			t.Errorf("New with address %q: %v, want an Invalid error", addr, err)
		}
	}
}

// TestEventsAcrossLeaders: a client of a follower is told what is stored before and
// after the leader has changed, on one stream.
func TestEventsAcrossLeaders(t *testing.T) {
	base, masters := three(t)
	leader := theLeader(t, masters...)
	rest := slices.DeleteFunc(slices.Clone(masters), func(m *master) bool { return m == leader })
	mine := rest[0]
	eventually.True(t, "the stream is there", func() bool {
		code, _ := mine.get(t, "/api/v1/watch?kind=x")
		return code == http.StatusInternalServerError // and not 503
	})
	c, err := contiv.New(contiv.Config{URLs: []string{"http://" + mine.addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, nil, func(n contivmodel.Notice) error {
			told <- n.Event
			for _, o := range n.Objects {
				told <- o.Key
			}
			return nil
		})
	}()
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := <-told; got != w {
				t.Fatalf("told %q, want %q", got, w)
			}
		}
	}
	store := func(key string) {
		t.Helper()
		if _, err := base.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(state.ModelRoot+"tenant/"+key, []byte("{}"))}}); err != nil {
			t.Fatal(err)
		}
	}
	expect("reset")
	store("a")
	expect("added", "a")
	leader.halt(t)
	theLeader(t, rest...)
	store("b")
	expect("added", "b")
	if _, body := mine.get(t, "/metrics"); !strings.Contains(body, "contiv_netmaster_event_streams 1\n") {
		t.Errorf("/metrics = %s", body)
	}
	if code, _ := mine.do(t, http.MethodPost, "/api/v1/watch", ""); code != http.StatusOK { // the stub answers everything
		t.Errorf("POST: %d", code)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
