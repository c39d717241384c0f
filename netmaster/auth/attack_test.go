package auth_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/test/eventually"
)

// TestTenFailures: the account and the source wait, with a time; others do not.
func TestTenFailures(t *testing.T) {
	sv := start(t, memory.New(), nil)
	sv.user("jane", "jane-secret")
	sv.user("john", "john-secret")
	try := func(source, user, password string) reply {
		return sv.call("POST", "login/", "", credentials(user, password), "Test-Source", source)
	}
	for range 10 {
		if got := try("192.0.2.1:1", "jane", "wrong"); got.status != 401 {
			t.Fatalf("a wrong password: %d %s", got.status, got.body)
		}
	}
	for _, tt := range []struct {
		source, user, password string
		want                   int
	}{
		{"192.0.2.1:2", "jane", "jane-secret", 429},
		{"192.0.2.1:2", "john", "john-secret", 429},
		{"192.0.2.2:2", "jane", "jane-secret", 429},
		{"192.0.2.2:2", "john", "john-secret", 200},
	} {
		got := try(tt.source, tt.user, tt.password)
		if got.status != tt.want || got.status == 429 && got.header.Get("Retry-After") != "2" {
			t.Errorf("%s from %s: %d, wait %q, want %d", tt.user, tt.source, got.status, got.header.Get("Retry-After"), tt.want)
		}
	}
	sv.advance(3 * time.Second)
	if got := try("192.0.2.1:3", "jane", "jane-secret"); got.status != 200 {
		t.Errorf("after the wait: %d %s", got.status, got.body)
	}
	if got := try("192.0.2.1:3", "admin", sv.first); got.status != 200 {
		t.Errorf("another one after the wait: %d %s", got.status, got.body)
	}
}

// TestManyWrongLogins: ten thousand from as many sources cost a bounded memory.
func TestManyWrongLogins(t *testing.T) {
	sv := start(t, memory.New(), func(c *auth.Config) { c.Audit = nil })
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	attack := func(n int) {
		for i := range n {
			sv.call("POST", "login/", "", credentials(fmt.Sprintf("user%d", i), "wrong"), "Test-Source", fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		}
	}
	attack(100)
	before := heap()
	attack(10_000)
	if after := heap(); after > before+8<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
}

// TestUnknownUserTakesAsLong: the medians of both kinds of failures are alike, measured in
// turn. TestSameWork shows why; this shows that nothing else differs.
func TestUnknownUserTakesAsLong(t *testing.T) {
	sv := start(t, memory.New(), func(c *auth.Config) { c.Hash = auth.DefaultHash })
	sv.user("jane", "jane-secret")
	const tries = 41
	var took [2][]time.Duration
	for i := range tries {
		for k, user := range []string{"jane", "nobody"} {
			began := time.Now()
			got := sv.call("POST", "login/", "", credentials(user, "wrong"), "Test-Source", fmt.Sprintf("10.0.%d.%d:1", i, k))
			took[k] = append(took[k], time.Since(began))
			if want := `{"error":"wrong user name or password"}`; got.status != 401 || got.body != want {
				t.Fatalf("%s: %d %s, want 401 %s", user, got.status, got.body, want)
			}
			sv.advance(time.Hour) // nobody waits here
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2])
	}
	ratio := median(took[1]) / median(took[0])
	t.Logf("unknown user / wrong password: %.3f", ratio)
	if ratio < 0.67 || ratio > 1.5 {
		t.Errorf("an unknown user takes %.2f of the time of a wrong password", ratio)
	}
}

// TestForgedTokens: what was not signed by this cluster, for this purpose, is refused.
func TestForgedTokens(t *testing.T) {
	store := memory.New()
	sv := start(t, store, nil)
	other := start(t, memory.New(), func(c *auth.Config) {
		c.Keys = func() []seal.Key { return clusterKey(2) }
	})
	token := sv.login("admin", sv.first)
	parts := strings.Split(token, ".")
	b64 := base64.RawURLEncoding
	none := b64.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	payload, _ := b64.DecodeString(parts[1])
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{"exp", "iss", "username", "principals", "role"} {
		if claims[claim] == nil || claims[claim] == "" {
			t.Errorf("the token has no claim %s: %v", claim, claims)
		}
	}
	claims["username"] = "ops"
	edited, _ := json.Marshal(claims)
	for name, bad := range map[string]string{
		"alg none": none, "another cluster": other.login("admin", other.first),
		"edited": parts[0] + "." + b64.EncodeToString(edited) + "." + parts[2], "cut": token[:len(token)-8],
		"no signature": parts[0] + "." + parts[1] + ".", "service": "contiv_0123456789abcdef_" + strings.Repeat("0", 64),
		"HMAC": b64.EncodeToString([]byte(`{"alg":"HS256","kid":"k1","typ":"JWT"}`)) + "." + parts[1] + "." + parts[2],
	} {
		if got := sv.call("GET", "whoami/", bad, ""); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	sv.want(200, "GET", "whoami/", token, "")
}

// TestWrittenByOthers: who can write the store, but does not have the cluster's key, can
// make neither users nor roles nor tokens, nor move a record to another name.
func TestWrittenByOthers(t *testing.T) {
	store := memory.New()
	sv := start(t, store, nil)
	sv.user("jane", "jane-secret", "viewer")
	kv, err := store.Get(t.Context(), state.AuthRoot+"users/jane")
	if err != nil {
		t.Fatal(err)
	}
	stranger := start(t, memory.New(), func(c *auth.Config) {
		c.Keys = func() []seal.Key { return clusterKey(9) }
	})
	stranger.user("mallory", "mallory-secret", "admin")
	_ = stranger
	txn := objdb.Txn{Then: []objdb.Op{
		objdb.Put(state.AuthRoot+"users/mallory", kv.Value), // jane's record under another name
		objdb.Put(state.AuthRoot+"users/plain", []byte(`{"username":"plain"}`)),
		objdb.Put(state.AuthRoot+"users/admin", []byte("not JSON")), // what was known stays
		objdb.Put(state.AuthRoot+"authorizations/x", []byte(`{"key_id":"k1","mac":"","record":{"principal":"jane","local":true,"role":"admin"}}`)),
	}}
	if _, err := store.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	sv.user("marker", "marker-secret") // the watch has delivered what was before
	sv.want(401, "POST", "login/", "", credentials("mallory", "jane-secret"))
	sv.want(404, "GET", "local_users/plain/", root, "")
	if got := sv.grants(sv.login("jane", "jane-secret")); got != "viewer" {
		t.Errorf("jane may %q, want viewer", got)
	}
	sv.login("admin", sv.first)
	// A record that cannot be read can be set anew by root.
	sv.want(200, "PATCH", "local_users/admin/", root, `{"password":"another-one"}`)
	if got := sv.grants(sv.login("admin", "another-one")); got != "admin" {
		t.Errorf("admin may %q", got)
	}
}

// TestNoSecretsInTheStore, nor in what is told of logins.
func TestNoSecretsInTheStore(t *testing.T) {
	store := memory.New()
	sv := start(t, store, nil)
	sv.user("jane", "jane-secret", "viewer")
	token := sv.login("jane", "jane-secret")
	sv.want(401, "POST", "login/", "", credentials("jane", "jane-wrong-secret"))
	service := sv.want(201, "POST", "tokens/", token, `{"name":"ci","role":"viewer"}`).field(t, "token")
	sv.want(204, "POST", "logout/", token, "")
	all := dump(t, store) + fmt.Sprint(sv.audited())
	for _, secret := range []string{"jane-secret", "jane-wrong-secret", sv.first, token, strings.Split(service, "_")[2]} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in the store or in the audit log", secret)
		}
	}
	if logins := sv.audited(); len(logins) != 2 || logins[0].Failed != "" || logins[1].Failed == "" || logins[1].User != "jane" {
		t.Errorf("audited: %+v", logins)
	}
}

// TestTwoNetmasters: what one does, the other knows; what both do at the same time happens
// once.
func TestTwoNetmasters(t *testing.T) {
	store := memory.New()
	announced := make(chan string, 2)
	both := func(c *auth.Config) {
		keep := c.Announce
		c.Announce = func(user, password string) {
			announced <- password
			keep(user, password)
		}
	}
	a, b := start(t, store, both), start(t, store.Connect(), both)
	if len(announced) != 1 {
		t.Fatalf("%d passwords were announced", len(announced))
	}
	token := a.login("admin", a.first)
	b.want(200, "GET", "local_users/", token, "")
	b.want(204, "POST", "logout/", token, "")
	eventually.True(t, "the logout is known everywhere", func() bool { return a.call("GET", "whoami/", token, "").status == 400 })

	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 10 {
		sv := []*server{a, b}[i%2]
		wg.Go(func() {
			got := sv.call("POST", "local_users/", root, credentials("jane", fmt.Sprintf("password-%d", i)))
			sv.call("POST", "authorizations/", root, `{"principalName":"jane","local":true,"role":"viewer"}`)
			sv.call("PATCH", "local_users/jane/", root, fmt.Sprintf(`{"last_name":"L%d"}`, i))
			mu.Lock()
			defer mu.Unlock()
			codes[got.status]++
		})
	}
	wg.Wait()
	if codes[201] != 1 || codes[201]+codes[409] != 10 {
		t.Errorf("ten times the same user: %v", codes)
	}
	if got := a.want(200, "GET", "authorizations/", root, ""); strings.Count(got.body, `"jane"`) != 1 {
		t.Errorf("ten times the same role: %s", got.body)
	}
}

// TestServiceTokens: scripts have tokens of their own, with an end, that never do more than
// who made them.
func TestServiceTokens(t *testing.T) {
	store := memory.New()
	sv := start(t, store, nil)
	sv.user("jane", "jane-secret", "ops:blue")
	jane := sv.login("jane", "jane-secret")
	for _, bad := range []string{`{"name":"x","role":"admin"}`, `{"name":"x","role":"ops","tenantName":"red"}`, `{"name":"x","role":"viewer"}`} {
		sv.want(403, "POST", "tokens/", jane, bad)
	}
	for _, bad := range []string{`{"name":"x y","role":"viewer"}`, `{"name":"x","role":"ops"}`, `{"name":"x","role":"viewer","ttl":"1s"}`, `{"name":"x","role":"viewer","ttl":"99999h"}`} {
		sv.want(400, "POST", "tokens/", root, bad)
	}
	made := sv.want(201, "POST", "tokens/", jane, `{"name":"ci","role":"ops","tenantName":"blue","ttl":"1h"}`)
	ci := made.field(t, "token")
	if got := sv.grants(ci); got != "ops:blue" {
		t.Errorf("the token may %q", got)
	}
	if all := sv.want(200, "GET", "tokens/", jane, ""); strings.Contains(all.body, ci) || !strings.Contains(all.body, `"ci"`) {
		t.Errorf("list: %s", all.body)
	}
	sv.want(403, "POST", "tokens/", ci, `{"name":"more","role":"ops","tenantName":"blue"}`)
	sv.want(403, "PATCH", "local_users/jane/", ci, `{"password":"taken-over"}`)
	sv.want(400, "POST", "logout/", ci, "")

	forAll := sv.want(201, "POST", "tokens/", root, `{"name":"forever","role":"viewer"}`).field(t, "token")
	if list := sv.want(200, "GET", "tokens/", jane, ""); strings.Contains(list.body, "forever") {
		t.Errorf("jane sees tokens of others: %s", list.body)
	}
	sv.want(200, "PATCH", "local_users/jane/", root, `{"disable":true}`)
	sv.want(401, "GET", "whoami/", ci, "")
	sv.want(200, "PATCH", "local_users/jane/", root, `{"disable":false}`)
	sv.want(200, "GET", "whoami/", ci, "")
	sv.advance(time.Hour + time.Second)
	sv.want(400, "GET", "whoami/", ci, "")
	sv.want(200, "GET", "whoami/", forAll, "")
	sv.want(204, "DELETE", "tokens/"+strings.Split(forAll, "_")[1]+"/", root, "")
	sv.want(400, "GET", "whoami/", forAll, "")
	sv.advance(2 * time.Hour)
	sv.user("marker", "marker-secret") // wakes up what removes outdated tokens
	eventually.True(t, "expired tokens are removed", func() bool { return !strings.Contains(dump(t, store), `"name":"ci"`) })
}

// TestTwoFirstStarts: of netmasters that start at the same time, one makes the built-in users.
func TestTwoFirstStarts(t *testing.T) {
	for range 20 {
		store := memory.New()
		var announced atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			client := store.Connect()
			log := logrus.New()
			log.SetOutput(io.Discard)
			s, err := auth.New(auth.Config{
				Store: func() objdb.Store { return client }, Keys: keys, Log: log, Hash: quick, Bootstrap: true, Announce: func(string, string) { announced.Add(1) },
			})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { s.Run(ctx, client) })
		}
		eventually.True(t, "a password is announced", func() bool { return announced.Load() > 0 })
		cancel()
		wg.Wait()
		if announced.Load() != 1 {
			t.Fatalf("%d passwords were announced", announced.Load())
		}
	}
}
