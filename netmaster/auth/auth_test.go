package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/test/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is a token that the servers of tests take for root by the unix socket.
const root = "root"

// quick is enough for tests that are not about passwords.
var quick = auth.HashParameters{Memory: 8, Time: 1, Threads: 1}

// server is a netmaster's login API, and a path that tells who asks.
type server struct {
	t    testing.TB
	s    *auth.Service
	http *httptest.Server

	mu     sync.Mutex
	ahead  time.Duration // of its clock
	logins []auth.Login
	first  string // password of admin
}

func keys() []seal.Key { return clusterKey(1) }

func clusterKey(first byte) []seal.Key {
	return []seal.Key{{ID: "k1", Secret: append([]byte{first}, make([]byte, 31)...)}}
}

// start runs a netmaster's login API on a store until the test ends.
func start(t testing.TB, store objdb.Store, edit func(*auth.Config)) *server {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	sv := &server{t: t}
	_, err := store.Get(t.Context(), state.AuthRoot+"users/admin")
	makes, announced := err != nil, make(chan string, 1)
	cfg := auth.Config{
		Store: func() objdb.Store { return store }, Keys: keys, Log: log, Hash: quick, Bootstrap: true, Version: "1.2.3",
		Announce: func(_, password string) { announced <- password },
		Audit: func(l auth.Login) {
			sv.mu.Lock()
			defer sv.mu.Unlock()
			sv.logins = append(sv.logins, l)
		},
		Now: func() time.Time {
			sv.mu.Lock()
			defer sv.mu.Unlock()
			return time.Now().Add(sv.ahead)
		},
	}
	if edit != nil {
		edit(&cfg)
	}
	if sv.s, err = auth.New(cfg); err != nil {
		t.Fatal(err)
	}
	sv.http = httptest.NewServer(http.HandlerFunc(sv.serve))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { sv.s.Run(ctx, store) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		sv.http.Client().CloseIdleConnections()
		sv.http.Close()
	})
	if cfg.Bootstrap && makes {
		sv.first = <-announced
	}
	if cfg.Bootstrap {
		eventually.True(t, "the built-in users are there", func() bool {
			return sv.call("GET", "local_users/admin/", root, "").status == http.StatusOK
		})
	}
	return sv
}

// serve identifies a client as netmaster's listeners do.
func (sv *server) serve(w http.ResponseWriter, r *http.Request) {
	id := identity.Identity{Kind: identity.Anonymous, Source: r.RemoteAddr}
	if from := r.Header.Get("Test-Source"); from != "" {
		r.RemoteAddr = from
	}
	if r.Header.Get("X-Auth-Token") == root {
		id = identity.Identity{Kind: identity.Root, Name: "root", How: "socket"}
	} else if got, ok, err := sv.s.Authenticate(r); err != nil {
		auth.WriteError(w, err)
		return
	} else if ok {
		id = got
	}
	sv.s.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
}

// advance moves the clock.
func (sv *server) advance(d time.Duration) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.ahead += d
}

func (sv *server) audited() []auth.Login {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return slices.Clone(sv.logins)
}

// reply is what a request got.
type reply struct {
	status int
	body   string
	header http.Header
}

func (r reply) field(t testing.TB, name string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Fatalf("%d %q: %v", r.status, r.body, err)
	}
	text, _ := m[name].(string)
	return text
}

// call sends a request to the login API. Further arguments are header fields.
func (sv *server) call(method, path, token, body string, header ...string) reply {
	sv.t.Helper()
	req, err := http.NewRequest(method, sv.http.URL+auth.Prefix+path, strings.NewReader(body))
	if err != nil {
		sv.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("X-Auth-Token", token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		sv.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		sv.t.Fatal(err)
	}
	return reply{status: resp.StatusCode, body: strings.TrimSpace(string(text)), header: resp.Header}
}

// want checks the status of a request, and that an error is one of the login API.
func (sv *server) want(status int, method, path, token, body string) reply {
	sv.t.Helper()
	got := sv.call(method, path, token, body)
	if got.status != status {
		sv.t.Fatalf("%s %s: %d %s, want %d", method, path, got.status, got.body, status)
	}
	if status >= 400 && got.field(sv.t, "error") == "" {
		sv.t.Errorf("%s %s: %d without {\"error\": …}: %s", method, path, got.status, got.body)
	}
	return got
}

// login logs in and returns the token.
func (sv *server) login(user, password string) string {
	sv.t.Helper()
	return sv.want(http.StatusOK, "POST", "login/", "", credentials(user, password)).field(sv.t, "token")
}

func credentials(user, password string) string {
	return text(map[string]any{"username": user, "password": password})
}

func text(m map[string]any) string {
	b, _ := json.Marshal(m)
	return string(b)
}

// user makes a local user with roles, written "ops:blue" or "admin".
func (sv *server) user(name, password string, roles ...string) {
	sv.t.Helper()
	sv.want(http.StatusCreated, "POST", "local_users/", root, credentials(name, password))
	for _, r := range roles {
		role, tenant, _ := strings.Cut(r, ":")
		sv.want(http.StatusCreated, "POST", "authorizations/", root, text(map[string]any{"principalName": name, "local": true, "role": role, "tenantName": tenant}))
	}
}

// grants are what whoami says, as "role:tenant" joined by blanks.
func (sv *server) grants(token string) string {
	sv.t.Helper()
	var id identity.Identity
	if err := json.Unmarshal([]byte(sv.want(http.StatusOK, "GET", "whoami/", token, "").body), &id); err != nil {
		sv.t.Fatal(err)
	}
	var all []string
	for _, g := range id.Grants {
		all = append(all, strings.TrimSuffix(string(g.Role)+":"+g.Tenant, ":"))
	}
	return strings.Join(all, " ")
}

// dump is everything in a store.
func dump(t testing.TB, store objdb.Store) string {
	t.Helper()
	kvs, _, err := store.List(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, kv := range kvs {
		b.WriteString(kv.Key + " " + string(kv.Value) + "\n")
	}
	return b.String()
}

// TestOriginalsAPI: every row of the table of the original's login API.
func TestOriginalsAPI(t *testing.T) {
	sv := start(t, memory.New(), nil)
	admin := sv.login("admin", sv.first)
	for _, step := range []struct {
		status             int
		method, path, with string
		token, want        string
	}{
		{200, "GET", "version/", "", "", `{"version":"1.2.3"}`},
		{200, "GET", "version", "", "", `{"version":"1.2.3"}`},
		{200, "GET", "health/", "", "", `{"status":"healthy"}`},
		{400, "POST", "login/", `{"username":"admin","password":""}`, "", ""},
		{400, "POST", "login/", `{"username":"","password":"x"}`, "", ""},
		{401, "POST", "login/", `{"username":"admin","password":"wrong"}`, "", ""},
		{500, "POST", "login/", `{"username"`, "", ""},
		{201, "POST", "local_users/", `{"username":"jane","password":"jane-secret","first_name":"Jane","last_name":"Doe","disable":false}`, admin, `{"username":"jane","first_name":"Jane","last_name":"Doe","disable":false}`},
		{409, "POST", "local_users/", `{"username":"jane","password":"jane-secret"}`, admin, ""},
		{400, "POST", "local_users/", `{"username":"a/b","password":"jane-secret"}`, admin, ""},
		{400, "POST", "local_users/", `{"username":"short","password":"short"}`, admin, ""},
		{200, "GET", "local_users/", "", admin, `[{"username":"admin","first_name":"","last_name":"","disable":false},{"username":"jane","first_name":"Jane","last_name":"Doe","disable":false},{"username":"ops","first_name":"","last_name":"","disable":true}]`},
		{200, "GET", "local_users/jane/", "", admin, `{"username":"jane","first_name":"Jane","last_name":"Doe","disable":false}`},
		{200, "PATCH", "local_users/jane/", `{"first_name":"J"}`, admin, `{"username":"jane","first_name":"J","last_name":"Doe","disable":false}`},
		{404, "GET", "local_users/nobody/", "", admin, ""},
		{400, "DELETE", "local_users/admin/", "", admin, ""},
		{400, "DELETE", "local_users/ops/", "", admin, ""},
		{201, "POST", "authorizations/", `{"principalName":"jane","local":true,"role":"ops","tenantName":"blue"}`, admin, ""},
		{400, "POST", "authorizations/", `{"principalName":"jane","local":true,"role":"ops"}`, admin, ""},
		{400, "POST", "authorizations/", `{"principalName":"jane","local":true,"role":"king"}`, admin, ""},
		{400, "POST", "authorizations/", `{"principalName":"nobody","local":true,"role":"admin"}`, admin, ""},
		{400, "POST", "authorizations/", `{"principalName":"jane","local":false,"role":"admin"}`, admin, ""},
		{404, "GET", "authorizations/none/", "", admin, ""},
		{404, "GET", "nothing/", "", admin, ""},
		{404, "PUT", "login/", "", "", ""},
		{400, "GET", "local_users/", "", "", ""},
		{400, "GET", "local_users/", "", "junk", ""},
		{204, "DELETE", "local_users/jane/", "", admin, ""},
		{404, "DELETE", "local_users/jane/", "", admin, ""},
	} {
		got := sv.want(step.status, step.method, step.path, step.token, step.with)
		if step.want != "" && got.body != step.want {
			t.Errorf("%s %s: %s, want %s", step.method, step.path, got.body, step.want)
		}
	}
}

// TestAuthorizationsReply: the reply has the original's names.
func TestAuthorizationsReply(t *testing.T) {
	sv := start(t, memory.New(), nil)
	sv.user("jane", "jane-secret")
	got := sv.want(201, "POST", "authorizations/", root, `{"principalName":"jane","local":true,"role":"ops","tenantName":"blue"}`)
	var fields map[string]any
	if err := json.Unmarshal([]byte(got.body), &fields); err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(fields)); !slices.Equal(names, []string{"AuthzUUID", "Local", "PrincipalName", "Role", "TenantName"}) {
		t.Errorf("fields %v", names)
	}
	uuid := got.field(t, "AuthzUUID")
	if one := sv.want(200, "GET", "authorizations/"+uuid+"/", root, ""); one.body != got.body {
		t.Errorf("GET: %s, want %s", one.body, got.body)
	}
	if all := sv.want(200, "GET", "authorizations/", root, ""); !strings.Contains(all.body, got.body) {
		t.Errorf("list: %s, want %s in it", all.body, got.body)
	}
	sv.want(204, "DELETE", "authorizations/"+uuid+"/", root, "")
	sv.want(404, "DELETE", "authorizations/"+uuid+"/", root, "")
}

// TestRightsAreLookedUp: a role counts, and stops counting, for tokens that are there.
func TestRightsAreLookedUp(t *testing.T) {
	sv := start(t, memory.New(), nil)
	sv.user("jane", "jane-secret")
	jane := sv.login("jane", "jane-secret")
	sv.want(403, "GET", "local_users/", jane, "")
	sv.want(200, "GET", "local_users/jane/", jane, "")
	sv.want(403, "GET", "local_users/admin/", jane, "")
	sv.want(403, "PATCH", "local_users/admin/", jane, `{"password":"taken-over"}`)
	sv.want(403, "PATCH", "local_users/jane/", jane, `{"disable":true}`)
	sv.want(403, "POST", "authorizations/", jane, `{"principalName":"jane","local":true,"role":"admin"}`)
	uuid := sv.want(201, "POST", "authorizations/", root, `{"principalName":"jane","local":true,"role":"admin"}`).field(t, "AuthzUUID")
	sv.want(200, "GET", "local_users/", jane, "")
	sv.want(204, "DELETE", "authorizations/"+uuid+"/", root, "")
	sv.want(403, "GET", "local_users/", jane, "")
	for _, role := range []string{"ops:blue", "viewer", "viewer:red"} {
		r, tenant, _ := strings.Cut(role, ":")
		sv.want(201, "POST", "authorizations/", root, text(map[string]any{"principalName": "jane", "local": true, "role": r, "tenantName": tenant}))
	}
	if got := sv.grants(jane); got != "ops:blue viewer viewer:red" {
		t.Errorf("grants = %q", got)
	}
}

// TestTokenEnds: whatever ends a token gives the status that the original had for it.
func TestTokenEnds(t *testing.T) {
	for name, end := range map[string]struct {
		status int
		do     func(*server, string)
	}{
		"after its time": {400, func(sv *server, _ string) { sv.advance(10*time.Hour + time.Second) }},
		"logged out":     {400, func(sv *server, token string) { sv.want(204, "POST", "logout/", token, "") }},
		"another password": {400, func(sv *server, _ string) {
			sv.want(200, "PATCH", "local_users/jane/", root, `{"password":"another-one"}`)
		}},
		"own password changed": {400, func(sv *server, token string) {
			sv.want(200, "PATCH", "local_users/jane/", token, `{"password":"another-one"}`)
		}},
		"disabled": {401, func(sv *server, _ string) { sv.want(200, "PATCH", "local_users/jane/", root, `{"disable":true}`) }},
		"disabled for a while": {400, func(sv *server, _ string) {
			sv.want(200, "PATCH", "local_users/jane/", root, `{"disable":true}`)
			sv.want(200, "PATCH", "local_users/jane/", root, `{"disable":false}`)
		}},
		"deleted": {401, func(sv *server, _ string) { sv.want(204, "DELETE", "local_users/jane/", root, "") }},
		"deleted and made again": {400, func(sv *server, _ string) {
			sv.want(204, "DELETE", "local_users/jane/", root, "")
			sv.user("jane", "jane-secret")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sv := start(t, memory.New(), nil)
			sv.user("jane", "jane-secret", "viewer")
			token, other := sv.login("jane", "jane-secret"), sv.login("admin", sv.first)
			sv.want(200, "GET", "whoami/", token, "")
			end.do(sv, token)
			sv.want(end.status, "GET", "whoami/", token, "")
			if name != "after its time" {
				sv.want(200, "GET", "whoami/", other, "")
			}
		})
	}
}

// TestLoginLastsTenHours, also by a clock that is not the issuer's.
func TestLoginLastsTenHours(t *testing.T) {
	store := memory.New()
	a := start(t, store, nil)
	b := start(t, store.Connect(), nil)
	token := a.login("admin", a.first)
	b.advance(-10 * time.Minute) // a host whose clock is behind
	b.want(200, "GET", "whoami/", token, "")
	b.advance(10*time.Hour + 9*time.Minute)
	b.want(200, "GET", "whoami/", token, "")
	b.advance(2 * time.Minute)
	b.want(400, "GET", "whoami/", token, "")
}

// TestBearer: the token is accepted in both headers, and nothing else is.
func TestBearer(t *testing.T) {
	sv := start(t, memory.New(), nil)
	token := sv.login("admin", sv.first)
	for value, want := range map[string]int{"Bearer " + token: 200, "bearer " + token: 200, "Basic " + token: 400, "Bearer": 400, token: 400} {
		if got := sv.call("GET", "whoami/", "", "", "Authorization", value); got.status != want {
			t.Errorf("Authorization: %.12s…: %d, want %d", value, got.status, want)
		}
	}
	if got := sv.call("GET", "whoami/", strings.Repeat("x", 17<<10), ""); got.status != 400 {
		t.Errorf("a token of 17 KiB: %d", got.status)
	}
}

// TestFirstPassword: it is announced once, and forgotten when it is changed, also by a netmaster
// that was not running then.
func TestFirstPassword(t *testing.T) {
	store := memory.New()
	var announced, forgotten atomic.Int32
	counts := func(c *auth.Config) {
		keep := c.Announce
		c.Announce = func(user, password string) {
			announced.Add(1)
			keep(user, password)
		}
		c.Forget = func() { forgotten.Add(1) }
	}
	a := start(t, store, counts)
	a.want(200, "PATCH", "local_users/admin/", root, `{"first_name":"A"}`)
	a.login("admin", a.first)
	if announced.Load() != 1 || forgotten.Load() != 0 {
		t.Errorf("announced %d times, forgotten %d times, want 1 and 0", announced.Load(), forgotten.Load())
	}
	a.want(200, "PATCH", "local_users/admin/", root, `{"password":"another-one"}`)
	eventually.True(t, "the first password is forgotten", func() bool { return forgotten.Load() == 1 })
	start(t, store.Connect(), counts)
	eventually.True(t, "a netmaster that starts later forgets, too", func() bool { return forgotten.Load() == 2 })
	if announced.Load() != 1 {
		t.Errorf("announced %d times", announced.Load())
	}
}
