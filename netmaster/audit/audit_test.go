package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/contiv/netplugin/netmaster/authz"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() logrus.FieldLogger {
	log, _ := test.NewNullLogger()
	return log
}

// server is netmaster as far as the audit log is concerned: who sends a request is in its
// identity.Header.
func server(l *Log) http.Handler {
	rules := authz.New(authz.Config{})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/login/") {
			http.Error(w, "wrong username or password", http.StatusUnauthorized)
			return
		}
		w.Header().Set(masterapi.RevisionHeader, "42")
		_, _ = w.Write([]byte("{}"))
	})
	chain := Middleware(l, rules, authz.Gate(rules, Serve(l, api)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := identity.Forwarded(r.Header)
		if err != nil {
			id = identity.Identity{Kind: identity.Anonymous, How: "tls", Source: "10.0.0.9:1"}
		}
		chain.ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
	})
}

func send(t *testing.T, h http.Handler, id *identity.Identity, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if id != nil {
		identity.Forward(r.Header, *id)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAudit: changes, refusals and logins are noted, with who and what, and never a body.
func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit", "audit.log")
	file, err := OpenFile(path, 1<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	l := New(file, quiet())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	h := server(l)
	jane := &identity.Identity{Kind: identity.User, Name: "jane", How: "password", Source: "10.0.0.1:5", Grants: []identity.Grant{{Role: identity.Viewer}}}
	root := &identity.Identity{Kind: identity.Root, Name: "root", How: "socket", Source: "unix"}
	send(t, h, jane, "GET", "/api/v1/networks/", "")
	send(t, h, jane, "DELETE", "/api/v1/networks/blue:web/", "")
	send(t, h, root, "POST", "/api/v1/Bgps/host1/", `{"password":"t0p-s3cret"}`)
	send(t, h, nil, "POST", "/api/v1/auth_proxy/login/", `{"username":"mallory","password":"t0p-s3cret"}`)
	send(t, h, nil, "GET", "/api/v1/networks/", "")
	send(t, h, jane, "GET", "/api/v1/security/audit", "")
	stop()
	<-done

	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "t0p-s3cret") {
		t.Fatalf("%v: %s", err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	var got []string
	in := bufio.NewScanner(strings.NewReader(string(text)))
	for in.Scan() {
		var r Record
		if err := json.Unmarshal(in.Bytes(), &r); err != nil || r.Time.IsZero() {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		got = append(got, strings.Join([]string{r.Who, r.How, r.Source, r.Verb, r.Kind, r.Key, r.Tenant, http.StatusText(r.Status), r.Reason, r.Revision}, "|"))
	}
	want := []string{
		"user jane|password|10.0.0.1:5|DELETE|network|blue:web|blue|Forbidden|user jane may not change networks of tenant blue: role ops of tenant blue is needed|",
		"root root|socket|unix|POST|Bgp|host1||OK||42",
		"anonymous|tls|10.0.0.9:1|POST||||Unauthorized|wrong username or password|",
		"anonymous|tls|10.0.0.9:1|GET|network|||Bad Request|no token: log in first (netctl login), or use the certificate of a host|",
		`user jane|password|10.0.0.1:5|GET||||Forbidden|user jane may not read "/api/v1/security/audit": role admin is needed|`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	for query, lines := range map[string]int{"": 5, "?denied=true": 3, "?user=jane": 2, "?since=2999-01-01T00:00:00Z": 0} {
		w := send(t, h, root, "GET", authz.PathAudit+query, "")
		if n := strings.Count(w.Body.String(), "\n"); n != lines || w.Code != 200 {
			t.Errorf("%q: status %d, %d lines, want %d", query, w.Code, n, lines)
		}
	}
	if w := send(t, h, root, "GET", authz.PathAudit+"?since=yesterday", ""); w.Code != 400 {
		t.Errorf("a time that is none: status %d", w.Code)
	}
}

// TestFollow: the answer goes on with what is noted after it began.
func TestFollow(t *testing.T) {
	file, err := OpenFile(filepath.Join(t.TempDir(), "audit.log"), 1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	l := New(file, quiet())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	s := httptest.NewServer(Serve(l, http.NotFoundHandler()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+authz.PathAudit+"?follow=true&user=b", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(resp.Body)
	l.Add(Record{Who: "user a", Verb: "POST"})
	l.Add(Record{Who: "user b", Verb: "DELETE"})
	if !in.Scan() || !strings.Contains(in.Text(), `"verb":"DELETE"`) {
		t.Errorf("got %q, %v", in.Text(), in.Err())
	}
	stop()
	resp.Body.Close()
	s.Close()
	<-done
}

// full is a sink that says when it is written to, and waits.
type full struct {
	lines   []string
	entered chan struct{}
	proceed chan struct{}
}

func (f *full) Write(p []byte) (int, error) {
	f.entered <- struct{}{}
	<-f.proceed
	f.lines = append(f.lines, string(p))
	return len(p), nil
}
func (f *full) Close() error { return nil }

// TestOverflow: nobody waits for the log, and it says how much it has lost.
func TestOverflow(t *testing.T) {
	sink := &full{entered: make(chan struct{}, 2*queueLength), proceed: make(chan struct{})}
	l := New(sink, quiet())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	l.Add(Record{Who: "first"})
	<-sink.entered // it is being written, and the queue is empty
	for range queueLength + 3 {
		l.Add(Record{Who: "many"})
	}
	close(sink.proceed)
	for range queueLength {
		<-sink.entered
	}
	l.Add(Record{Who: "last"})
	stop()
	<-done
	if n := len(sink.lines); n != queueLength+2 || !strings.Contains(sink.lines[n-1], `"dropped":3`) {
		t.Errorf("%d lines, the last is %s", n, sink.lines[n-1])
	}
}

// TestRotation: there are as many files as are kept, none larger than it may be.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFile(filepath.Join(dir, "audit.log"), 25, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		if _, err := f.Write([]byte(strings.Repeat(string(rune('0'+i)), 9) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"audit.log": "8", "audit.log.1": "67", "audit.log.2": "45", "audit.log.3": ""} {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		got := ""
		for line := range strings.Lines(string(text)) {
			got += line[:1]
		}
		if got != want {
			t.Errorf("%s has the lines %q, want %q", name, got, want)
		}
	}
}
