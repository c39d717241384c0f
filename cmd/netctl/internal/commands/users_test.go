package commands

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/auth"
	"github.com/contiv/netplugin/netmaster/seal"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/securityapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
)

// secured is a netmaster with users, by TLS and by a unix socket.
type secured struct {
	t             *testing.T
	url, socket   string
	authority     *pki.Authority
	authorityFile string

	mu     sync.Mutex
	tokens []string // that requests have carried
}

// startSecured starts a netmaster with users, and gives netctl a home of its own.
func startSecured(t *testing.T) *secured {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	s := &secured{t: t}
	s.authority = pkitest.Authority(t)
	s.authorityFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(s.authorityFile, pkitest.Roots(s.authority), 0o600); err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	log := logrus.New()
	log.SetOutput(t.Output())
	users, err := auth.New(auth.Config{
		Store: func() objdb.Store { return store }, Keys: func() []seal.Key { return []seal.Key{{ID: "k"}} }, Log: log,
		Hash: auth.HashParameters{Memory: 8, Time: 1, Threads: 1}, Bootstrap: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		users.Run(ctx, store)
	}()
	tcp := httptest.NewUnstartedServer(s.handler(users, identity.Identity{Kind: identity.Anonymous, How: "tls"}))
	tcp.TLS = s.certificate(pki.UnitMaster)
	tcp.StartTLS()
	s.url = tcp.URL
	s.socket = filepath.Join(t.TempDir(), "netmaster.sock")
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s.handler(users, identity.Identity{Kind: identity.Root, Name: "root", How: "socket"})}}
	local.Start()
	t.Cleanup(func() {
		tcp.Close()
		local.Close()
		cancel()
		<-done
	})
	eventually.True(t, "the built-in users are there", func() bool {
		return s.try("--netmaster", "unix://"+s.socket, "user", "ls").status == 0
	})
	return s
}

func (s *secured) certificate(unit pki.Unit) *tls.Config {
	s.t.Helper()
	csr, key, err := pki.NewRequest("m")
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := s.authority.Sign(csr, pki.Subject{Name: "10.1.1.1", Unit: unit}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// handler serves users as netmaster does.
func (s *secured) handler(users *auth.Service, who identity.Identity) http.Handler {
	root, _, _ := s.authority.PEM()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.tokens = append(s.tokens, r.Header.Get("X-Auth-Token"))
		s.mu.Unlock()
		id := who
		if got, found, err := users.Authenticate(r); err != nil {
			auth.WriteError(w, err)
			return
		} else if found {
			id = got
		}
		switch {
		case strings.HasPrefix(r.URL.Path, auth.Prefix):
			users.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), id)))
		case r.URL.Path == securityapi.PathRoots:
			_ = json.NewEncoder(w).Encode(securityapi.Roots{Roots: string(root)})
		default:
			_, _ = io.WriteString(w, "[]")
		}
	})
}

// result is what a command did.
type result struct {
	status      int
	out, errors string
}

func (s *secured) try(args ...string) result { return s.tryWith("", args...) }

func (s *secured) tryWith(stdin string, args ...string) result {
	s.t.Helper()
	var out, errors bytes.Buffer
	status := Run(s.t.Context(), append([]string{"netctl"}, args...), strings.NewReader(stdin), &out, &errors)
	return result{status, out.String(), errors.String()}
}

// netctl runs a command that must succeed, and returns what it prints.
func (s *secured) netctl(stdin string, args ...string) string {
	s.t.Helper()
	r := s.tryWith(stdin, args...)
	if r.status != 0 {
		s.t.Fatalf("netctl %s: status %d, %s%s", strings.Join(args, " "), r.status, r.out, r.errors)
	}
	return r.out
}

// refuses runs a command that must fail with a text.
func (s *secured) refuses(text, stdin string, args ...string) {
	s.t.Helper()
	r := s.tryWith(stdin, args...)
	if r.status == 0 || !strings.Contains(r.errors, text) {
		s.t.Errorf("netctl %s: status %d, %q, want a failure with %q", strings.Join(args, " "), r.status, r.errors, text)
	}
}

func (s *secured) file() configFile {
	s.t.Helper()
	c, err := readConfig()
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestUserSession is a day with users: root sets the first password by the socket, admin
// logs in by TLS, makes users, roles and tokens, and logs out.
func TestUserSession(t *testing.T) {
	s := startSecured(t)
	local := "unix://" + s.socket
	if got := s.netctl("", "--netmaster", local, "whoami"); got != "root root (socket)\nroles: admin\n" {
		t.Errorf("whoami by the socket: %q", got)
	}
	printed := s.netctl("", "--netmaster", local, "user", "passwd", "admin", "--random")
	password := strings.TrimSpace(strings.TrimPrefix(printed, "Password of admin: "))
	s.refuses("certificate", "", "--netmaster", s.url, "user", "ls")
	s.netctl("", "--netmaster", s.url, "config", "set", "lab", "--ca-hash", s.authority.Hash())
	s.refuses("no token", "", "user", "ls")
	if got := s.netctl("admin\n"+password+"\n", "login"); got != "Username: Password: Login succeeded.\n" {
		t.Errorf("login: %q", got)
	}
	if got := s.netctl("", "whoami"); got != "user admin (password)\nroles: admin\n" {
		t.Errorf("whoami: %q", got)
	}
	s.netctl("jane-secret\njane-secret\n", "user", "create", "jane", "--first-name", "Jane")
	s.refuses("differ", "jane-secret\njane-other\n", "user", "passwd", "jane")
	s.netctl("", "user", "update", "jane", "--last-name", "Doe")
	if got := s.netctl("", "user", "ls"); !strings.Contains(got, "jane   Jane        Doe        enabled\n") {
		t.Errorf("user ls:\n%s", got)
	}
	if got := s.netctl("", "role", "add", "jane", "ops", "--tenant", "blue"); got != "jane has the role ops of blue\n" {
		t.Errorf("role add: %q", got)
	}
	s.netctl("", "role", "add", "oidc:watchers", "viewer")
	s.refuses("needs a tenant", "", "role", "add", "jane", "ops")
	var roles []authorization
	if err := json.Unmarshal([]byte(s.netctl("", "role", "ls", "--json")), &roles); err != nil || len(roles) != 3 {
		t.Fatalf("role ls: %v, %v", roles, err)
	}
	token := strings.TrimSpace(s.netctl("", "token", "create", "ci", "--role", "ops", "--tenant", "blue", "--ttl", "1h"))
	if got := s.netctl("", "token", "ls"); !strings.Contains(got, "  ci    ops   blue    admin  ") || strings.Contains(got, token) {
		t.Errorf("token ls:\n%s", got)
	}
	admin := s.file().Contexts["lab"].Token
	s.netctl("", "logout")
	if s.file().Contexts["lab"].Token != "" || s.file().Current != "lab" {
		t.Errorf("after the logout: %+v", s.file())
	}
	s.refuses("logged out", admin, "login", "--token-stdin")
	s.netctl("jane-secret", "login", "--user", "jane", "--password-stdin")
	if got := s.netctl("", "whoami"); got != "user jane (password)\nroles: ops of blue\n" {
		t.Errorf("whoami: %q", got)
	}
	s.refuses("role admin", "", "user", "ls")
	s.netctl(token+"\n", "login", "--token-stdin")
	if got := s.netctl("", "whoami"); got != "user token/ci (service token)\nroles: ops of blue\n" {
		t.Errorf("whoami: %q", got)
	}
	s.netctl("", "--netmaster", local, "user", "update", "jane", "--disable")
	s.refuses("bad username or password", "jane-secret", "login", "--user", "jane", "--password-stdin")
	for _, r := range roles {
		if r.PrincipalName != "admin" {
			s.netctl("", "--netmaster", local, "role", "rm", r.AuthzUUID)
		}
	}
	s.netctl("", "--netmaster", local, "token", "rm", strings.Split(token, "_")[1])
	s.netctl("", "--netmaster", local, "user", "rm", "jane")
	s.refuses("does not exist", "", "--netmaster", local, "user", "rm", "jane")
}

// TestContexts: several clusters, each with its own login; what options and environment say
// goes before.
func TestContexts(t *testing.T) {
	s := startSecured(t)
	s.netctl("admin-secret", "--netmaster", "unix://"+s.socket, "user", "passwd", "admin", "--password-stdin")
	s.refuses("needs the URL", "", "config", "set", "lab")
	s.refuses("no certificate authority", "", "--netmaster", s.url, "config", "set", "lab", "--ca-hash", strings.Repeat("0", 64))
	s.refuses("expected certificates", "", "--netmaster", s.url, "--ca", "/dev/null", "config", "set", "lab")
	s.refuses("netmaster URL", "", "--netmaster", "ftp://x", "config", "set", "lab")
	s.netctl("", "--netmaster", s.url, "--ca", s.authorityFile, "config", "set", "lab")
	original := httptest.NewServer(http.NotFoundHandler())
	defer original.Close()
	s.netctl("", "--netmaster", original.URL, "config", "set", "old")
	s.netctl("admin-secret", "login", "--user", "admin", "--password-stdin")
	want := fmt.Sprintf("Name Netmaster Authority Logged in ---- --------- --------- --------- * lab %s its own yes old %s none no", s.url, original.URL)
	if got := s.netctl("", "config", "ls"); strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("config ls:\n%s, want\n%s", got, want)
	}
	if info, err := os.Stat(filepath.Join(os.Getenv("HOME"), ".netctl", "config.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	s.netctl("", "config", "use", "old")
	s.refuses("this server does not know", "", "whoami")
	s.netctl("", "--context", "lab", "whoami")
	s.refuses("no context", "", "--context", "none", "whoami")
	s.refuses("no token", "", "--netmaster", s.url, "--ca", s.authorityFile, "whoami")
	s.netctl("", "--netmaster", s.url+"/", "config", "set", "lab") // another server: its token is not for it
	if at := s.file().Contexts["lab"]; at.Token != "" || at.CA == "" {
		t.Errorf("the context after its server changed: %+v", at)
	}
	s.netctl("", "config", "rm", "lab")
	s.netctl("", "config", "rm", "old")
	s.refuses("no context", "", "config", "rm", "old")
	if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), ".netctl", "config.json")); !os.IsNotExist(err) {
		t.Errorf("the file when there is nothing in it: %v", err)
	}
}

// TestOriginalsLoginFile: a file of the original is understood, and stays one.
func TestOriginalsLoginFile(t *testing.T) {
	s := startSecured(t)
	s.netctl("admin-secret", "--netmaster", "unix://"+s.socket, "user", "passwd", "admin", "--password-stdin")
	connection := []string{"--netmaster", s.url, "--ca", s.authorityFile}
	s.netctl("admin-secret", append(connection, "login", "--user", "admin", "--password-stdin")...)
	token := s.file().Token
	path, _ := configPath()
	if err := os.WriteFile(path, []byte(`{"token":"`+token+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.netctl("", append(connection, "whoami")...)
	s.netctl("", append(connection, "logout")...)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file after the logout: %v", err)
	}
}

// TestTokenIsForTLSOnly: no token goes over plain HTTP or to a server that is no netmaster of
// the cluster.
func TestTokenIsForTLSOnly(t *testing.T) {
	s := startSecured(t)
	if err := keepToken(target{}, "the-token"); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Auth-Token") != "" {
			t.Error("a token came in clear")
		}
		_, _ = io.WriteString(w, "[]")
	}))
	defer plain.Close()
	s.netctl("", "--netmaster", plain.URL, "tenant", "ls")
	s.refuses("https://", "x", "--netmaster", plain.URL, "login", "--user", "admin", "--password-stdin")
	s.refuses("https://", "x", "--netmaster", s.url+","+plain.URL, "login", "--user", "admin", "--password-stdin")
	away := httptest.NewUnstartedServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	away.TLS = s.certificate(pki.UnitMaster)
	away.StartTLS()
	defer away.Close()
	s.refuses("307", "", "--netmaster", away.URL, "--ca", s.authorityFile, "tenant", "ls")
	for _, unit := range []pki.Unit{pki.UnitAgent, pki.UnitMonitor} {
		fake := httptest.NewUnstartedServer(plain.Config.Handler)
		fake.TLS = s.certificate(unit)
		fake.StartTLS()
		s.refuses("expected the certificate of a netmaster", "", "--netmaster", fake.URL, "--ca", s.authorityFile, "tenant", "ls")
		fake.Close()
	}
	s.refuses("certificate", "", "--netmaster", s.url, "tenant", "ls")
}

// TestSocketByDefault: root of a netmaster's host and netmaster's user need no option, others do.
func TestSocketByDefault(t *testing.T) {
	s := startSecured(t)
	for _, tt := range []struct {
		uid    int
		socket string
		want   string
	}{{0, s.socket, "unix://" + s.socket}, {1000, s.socket, defaultURL}, {0, s.socket + "x", defaultURL}, {0, s.authorityFile, defaultURL}} {
		if got, err := (selectors{}).resolve(tt.uid, tt.socket); err != nil || got.urls[0] != tt.want {
			t.Errorf("uid %d, %s: %v, %v, want %s", tt.uid, tt.socket, got.urls, err, tt.want)
		}
	}
	if err := os.Chown(s.socket, 1000, -1); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int]string{1000: "unix://" + s.socket, 1001: defaultURL} {
		if got, err := (selectors{}).resolve(uid, s.socket); err != nil || got.urls[0] != want {
			t.Errorf("uid %d with netmaster of user 1000: %v, %v, want %s", uid, got.urls, err, want)
		}
	}
	if got, err := (selectors{netmaster: "http://m:9999"}).resolve(0, s.socket); err != nil || got.urls[0] != "http://m:9999" {
		t.Errorf("with --netmaster: %v, %v", got.urls, err)
	}
}
