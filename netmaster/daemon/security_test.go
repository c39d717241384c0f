package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/pki/pkitest"
	"github.com/contiv/netplugin/utils/signal"
	"github.com/contiv/netplugin/utils/tlsport"
	"github.com/contiv/netplugin/utils/version"
)

// teller is a Controller that answers with the identity of who asks.
type teller struct{ name string }

func (c teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := json.Marshal(struct {
		By    string
		Who   identity.Identity
		Token string
	}{c.name, identity.From(r.Context()), r.Header.Get("X-Auth-Token")})
	_, _ = w.Write(text)
}

func (c teller) Wait() {}

// tokens knows one token, until it is withdrawn.
type tokens struct {
	withdrawn atomic.Bool
	changed   signal.Signal
}

func (k *tokens) Changed() <-chan struct{} { return k.changed.Next() }

var jane = identity.Identity{Kind: identity.User, Name: "jane", How: "password", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}}}

func (k *tokens) Authenticate(r *http.Request) (identity.Identity, bool, error) {
	if k.withdrawn.Load() {
		return identity.Identity{}, true, errors.New("the token is not good any more")
	}
	switch r.Header.Get("X-Auth-Token") {
	case "":
		return identity.Identity{}, false, nil
	case "of jane":
		return jane, true, nil
	}
	return identity.Identity{}, true, errors.New("the token is not good")
}

// secured is a netmaster that tells clients apart.
type secured struct {
	addr, rpc, socket string
	creds             *pki.Credentials
	tokens            *tokens
	noted             atomic.Int64 // answers to those who could not be identified
	stop              func()
}

func startSecured(t testing.TB, ca *pki.Authority, mode tlsport.Mode, store objdb.Store) *secured {
	t.Helper()
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s := &secured{tokens: &tokens{}, socket: filepath.Join(t.TempDir(), "socket")}
	api, rpc := listen("tcp", "127.0.0.1:0"), listen("tcp", "127.0.0.1:0")
	s.addr, s.rpc = api.Addr().String(), rpc.Addr().String()
	s.creds = pkitest.Credentials(t, ca, pki.UnitMaster, s.addr)
	log := logrus.New()
	log.SetOutput(testWriter{t, s.addr})
	if _, bench := t.(*testing.B); bench { // whose output is a table
		log.SetOutput(io.Discard)
	}
	d, err := daemon.New(daemon.Config{
		Listeners: []net.Listener{api}, Address: s.addr, RPC: rpc, OpenStore: func(context.Context) (objdb.Store, error) { return store, nil },
		NewController: func(context.Context, objdb.Store, objdb.Leadership) (daemon.Controller, error) {
			return teller{s.addr}, nil
		},
		Lease: time.Minute, Log: log, Version: version.Info{},
		Security: daemon.Security{Mode: mode, Credentials: s.creds, Tokens: s.tokens, Note: s.note, Socket: listen("unix", s.socket)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// note counts, in place of an audit log.
func (s *secured) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.noted.Add(1)
		next.ServeHTTP(w, r)
	})
}

// ask sends a GET by TLS, with the certificate of creds if it has one.
func (s *secured) ask(t *testing.T, creds *pki.Credentials, path string, header ...string) (int, string) {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: pki.ClientConfig(creds, pki.UnitMaster), DisableKeepAlives: true}
	return get(t, &http.Client{Transport: tr}, "https://"+s.addr+path, header...)
}

func get(t *testing.T, c *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// answer is what a teller has said.
type answer struct {
	By, Token string
	Who       identity.Identity
}

func parse(t *testing.T, status int, text string) (a answer) {
	t.Helper()
	if status != http.StatusOK || json.Unmarshal([]byte(text), &a) != nil {
		t.Fatalf("%d %q", status, text)
	}
	return a
}

// TestIdentities: the leader knows who asks, whichever netmaster was asked.
func TestIdentities(t *testing.T) {
	ca, store := pkitest.Authority(t), memory.New()
	one, two := startSecured(t, ca, tlsport.Require, store.Connect()), startSecured(t, ca, tlsport.Require, store.Connect())
	anonymous := pki.NewCredentials()
	if err := anonymous.SetRoots(pki.EncodeCertificates(ca.Cert)); err != nil {
		t.Fatal(err)
	}
	host := pkitest.Credentials(t, ca, pki.UnitAgent, "h1")
	eventually.True(t, "somebody leads", func() bool {
		status, _ := one.ask(t, anonymous, "/api/v1/x/")
		return status == http.StatusOK
	})
	for _, m := range []*secured{one, two} {
		for name, c := range map[string]struct {
			creds  *pki.Credentials
			header []string
			want   identity.Identity
		}{
			"nobody":              {anonymous, nil, identity.Identity{Kind: identity.Anonymous, How: "tls"}},
			"a user":              {anonymous, []string{"X-Auth-Token", "of jane"}, jane},
			"a host":              {host, nil, identity.Identity{Kind: identity.Host, Name: "h1", How: "certificate"}},
			"a host with a token": {host, []string{"X-Auth-Token", "of jane"}, identity.Identity{Kind: identity.Host, Name: "h1", How: "certificate"}},
			"a host that says it is somebody else": {
				host, []string{identity.Header, `{"kind":"root","name":"root"}`}, identity.Identity{Kind: identity.Host, Name: "h1", How: "certificate"},
			},
			"nobody who says to be root": {anonymous, []string{identity.Header, `{"kind":"root","name":"root"}`}, identity.Identity{Kind: identity.Anonymous, How: "tls"}},
			"another netmaster":          {one.creds, nil, identity.Identity{Kind: identity.Master, Name: one.addr, How: "certificate"}},
		} {
			status, text := m.ask(t, c.creds, "/api/v1/x/", c.header...)
			answer := parse(t, status, text)
			got := answer.Who
			if answer.By != m.addr && answer.Token != "" {
				t.Errorf("%s: the token was passed on", name)
			}
			if got.Source == "" {
				t.Errorf("%s: no source", name)
			}
			got.Source = ""
			if got.String() != c.want.String() || got.How != c.want.How || len(got.Grants) != len(c.want.Grants) {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
		if status, text := m.ask(t, anonymous, "/api/v1/x/", "X-Auth-Token", "bad"); status != http.StatusBadRequest || !strings.Contains(text, "not good") {
			t.Errorf("a bad token: %d %q", status, text)
		}
		if n := m.noted.Load(); n != 1 {
			t.Errorf("%d refusals were noted", n)
		}
		if status, text := m.ask(t, anonymous, "/api/v1/x/", "X-Contiv-Forwarded-By", "me"); status != http.StatusOK {
			t.Errorf("a forwarding header of nobody: %d %q", status, text)
		}
		root := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", m.socket)
		}}}
		status, text := get(t, root, "http://netmaster/api/v1/x/")
		if got := parse(t, status, text).Who; got.Kind != identity.Root {
			t.Errorf("by the socket: %+v", got)
		}
	}
}

// TestOpenModes: without TLS being required, who is anonymous may do everything.
func TestOpenModes(t *testing.T) {
	for _, mode := range []tlsport.Mode{tlsport.Off, tlsport.Accept} {
		m := startSecured(t, pkitest.Authority(t), mode, memory.New())
		eventually.True(t, "it leads", func() bool {
			status, _ := get(t, client, "http://"+m.addr+"/api/v1/x/")
			return status == http.StatusOK
		})
		status, text := get(t, client, "http://"+m.addr+"/api/v1/x/", identity.Header, `{"kind":"user","name":"x"}`)
		if got := parse(t, status, text).Who; got.Kind != identity.Anonymous || !got.IsAdmin() {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}

// TestForgedLeader: who writes a leader's address into the store gets no request to see, and
// no token.
func TestForgedLeader(t *testing.T) {
	ca := pkitest.Authority(t)
	for name, creds := range map[string]*pki.Credentials{"plain": nil, "other authority": pkitest.Credentials(t, pkitest.Authority(t), pki.UnitMaster, "m"), "a host": pkitest.Credentials(t, ca, pki.UnitAgent, "h1")} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			var seen atomic.Int64
			raw, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := raw
			if creds != nil {
				l = tlsport.Listen(raw, tlsport.Config{Mode: tlsport.Require, TLS: pki.ServerConfig(creds, pki.CertificateOptional)})
			}
			forged := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) })}
			go func() { _ = forged.Serve(l) }()
			t.Cleanup(func() { forged.Close() })
			txn := objdb.Txn{Then: []objdb.Op{objdb.Put(state.LeaderKey, []byte(raw.Addr().String()))}}
			if _, err := store.Commit(t.Context(), txn); err != nil {
				t.Fatal(err)
			}
			m := startSecured(t, ca, tlsport.Require, store.Connect())
			client := pkitest.Credentials(t, ca, pki.UnitAgent, "h2")
			eventually.True(t, "it is passed on, in vain", func() bool {
				status, text := m.ask(t, client, "/api/v1/x/", "X-Auth-Token", "of jane")
				if status != http.StatusServiceUnavailable {
					t.Fatalf("%d %q", status, text)
				}
				return strings.Contains(text, "TLS handshake") || strings.Contains(text, "cannot be reached")
			})
			if n := seen.Load(); n != 0 {
				t.Errorf("the forged leader has seen %d requests", n)
			}
		})
	}
}

// TestReportsNeedACertificate: the port for reports talks to hosts and netmasters only.
func TestReportsNeedACertificate(t *testing.T) {
	ca := pkitest.Authority(t)
	m := startSecured(t, ca, tlsport.Require, memory.New())
	stranger := pki.NewCredentials()
	if err := stranger.SetRoots(pki.EncodeCertificates(ca.Cert)); err != nil {
		t.Fatal(err)
	}
	for name, creds := range map[string]*pki.Credentials{"stranger": stranger, "monitor": pkitest.Credentials(t, ca, pki.UnitMonitor, "prometheus"), "other": pkitest.Credentials(t, pkitest.Authority(t), pki.UnitAgent, "h1")} {
		tr := &http.Transport{TLSClientConfig: pki.ClientConfig(creds), DisableKeepAlives: true}
		if status, text := get(t, &http.Client{Transport: tr}, "https://"+m.rpc+clusterapi.PathReport); status != 0 {
			t.Errorf("%s: %d %q", name, status, text)
		}
	}
	tr := &http.Transport{TLSClientConfig: pki.ClientConfig(pkitest.Credentials(t, ca, pki.UnitAgent, "h1")), DisableKeepAlives: true}
	if status, text := get(t, &http.Client{Transport: tr}, "https://"+m.rpc+clusterapi.PathReport); status != http.StatusNotFound {
		t.Errorf("a host: %d %q", status, text)
	}
}

// TestWatchEndsWithTheToken: who is logged out sees nothing more, on a stream that is open.
func TestWatchEndsWithTheToken(t *testing.T) {
	ca := pkitest.Authority(t)
	m := startSecured(t, ca, tlsport.Require, memory.New())
	anonymous := pki.NewCredentials()
	if err := anonymous.SetRoots(pki.EncodeCertificates(ca.Cert)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it leads", func() bool {
		status, _ := m.ask(t, anonymous, "/api/v1/x/")
		return status == http.StatusOK
	})
	tr := &http.Transport{TLSClientConfig: pki.ClientConfig(anonymous, pki.UnitMaster), DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+m.addr+"/api/v1/watch", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", "of jane")
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	m.tokens.changed.Broadcast() // something has changed, but not for this one
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	m.tokens.withdrawn.Store(true)
	m.tokens.changed.Broadcast()
	_, _ = io.Copy(io.Discard, resp.Body) // how it ends says nothing
}
