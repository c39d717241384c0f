package dockplugin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/mgmtfn/socket"
	"github.com/contiv/netplugin/utils/dockerd"
)

// TestAnswersAreExact compares the fixed replies byte for byte.
func TestAnswersAreExact(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		"/Plugin.Activate":                           `{"Implements":["NetworkDriver","IpamDriver"]}`,
		"/Plugin.Deactivate":                         `{}`,
		"/NetworkDriver.GetCapabilities":             `{"Scope":"local","ConnectivityScope":"global","GwAllocChecker":true}`,
		"/NetworkDriver.AllocateNetwork":             `{"Options":null}`,
		"/NetworkDriver.FreeNetwork":                 `{}`,
		"/NetworkDriver.GwAllocCheck":                `{"SkipIPv4":false,"SkipIPv6":false}`,
		"/NetworkDriver.EndpointOperInfo":            `{"Value":null}`,
		"/NetworkDriver.Leave":                       `{}`,
		"/NetworkDriver.DeleteEndpoint":              `{}`,
		"/NetworkDriver.DeleteNetwork":               `{}`,
		"/NetworkDriver.ProgramExternalConnectivity": `{}`,
		"/NetworkDriver.RevokeExternalConnectivity":  `{}`,
		"/NetworkDriver.DiscoverNew":                 `{}`,
		"/NetworkDriver.DiscoverDelete":              `{}`,
		"/IpamDriver.GetCapabilities":                `{"RequiresMACAddress":false,"RequiresRequestReplay":false}`,
		"/IpamDriver.GetDefaultAddressSpaces":        `{"LocalDefaultAddressSpace":"contiv","GlobalDefaultAddressSpace":"contiv"}`,
		"/IpamDriver.ReleasePool":                    `{}`,
	} {
		status, body := post(w.server, path, struct{}{})
		if got := strings.TrimSpace(string(body)); status != http.StatusOK || got != want {
			t.Errorf("%s: %d %s, want %s", path, status, got, want)
		}
	}
}

func TestCapabilitiesByMode(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{{Config{Scope: ScopeLocal}, "local"}, {Config{Scope: ScopeGlobal}, "global"}, {Config{Scope: ScopeLocal, Swarm: true}, "global"}} {
		if got := (&Server{cfg: c.cfg}).capabilities(); got.Scope != c.want || got.ConnectivityScope != "global" {
			t.Errorf("%+v: %+v, want scope %s", c.cfg, got, c.want)
		}
	}
}

// TestFailuresHaveBothMembers: the clients of the two protocols read different ones.
func TestFailuresHaveBothMembers(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/NetworkDriver.Unknown", "{}", 404},
		{"GET", "/Plugin.Activate", "", 404},
		{"POST", "/IpamDriver.RequestPool", "{", 400},
		{"POST", "/NetworkDriver.CreateEndpoint", `{"EndpointID":7}`, 400},
		{"POST", "/NetworkDriver.CreateEndpoint", `{}`, 500},
		{"POST", "/IpamDriver.RequestAddress", `{"PoolID":"10.1.1.1"}`, 500},
		{"POST", "/IpamDriver.RequestAddress", `{"PoolID":"net.default|10.1.1.0/24","Address":"::1"}`, 500},
		{"POST", "/IpamDriver.ReleaseAddress", `{"PoolID":"10.1.1.0/24","Address":"x"}`, 500},
		{"POST", "/IpamDriver.RequestPool", `{}`, 500},
		{"POST", "/NetworkDriver.CreateNetwork", `{"Options":{"com.docker.network.enable_ipv4":false}}`, 500},
	} {
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		var e cnm.Error
		if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil || rec.Code != c.status || e.Err == "" || e.Err != e.Error || strings.Contains(e.Err, "\n") {
			t.Errorf("%s %s %s: %d %s, want status %d and one text in both members", c.method, c.path, c.body, rec.Code, rec.Body, c.status)
		}
		if got := rec.Header().Get("Content-Type"); got != cnm.ContentType {
			t.Errorf("%s: Content-Type %q", c.path, got)
		}
	}
}

// TestSocket: it is created immediately, is accessible to root only, and is removed at the
// end.
func TestSocket(t *testing.T) {
	w := newWorld(t)
	w.stop()
	path := filepath.Join(t.TempDir(), "plugins", "netplugin.sock")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil { // left by somebody
		t.Fatal(err)
	}
	l, err := socket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info, err)
	}
	l.Close()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket stays after its end")
	}
}

func FuzzCalls(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"PoolID":"a.b|10.1.1.0/24"}`, `{"PoolID":"|"}`, `{"Pool":"10.0.0.0/8","V6":true}`,
		`{"NetworkID":"n","EndpointID":"e","Interface":{"Address":"10.1.1.1/24"}}`, `{"Options":{"com.docker.network.generic":{"contiv-tag":"x"}}}`,
	} {
		f.Add(body)
	}
	s := NewServer(Config{Agent: noAgent{}, Ports: noPorts{}, Master: noMaster{}, Engine: newEngine(), Log: discard()})
	f.Fuzz(func(t *testing.T, body string) {
		for path := range s.handlers {
			ctx, cancel := ended()
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)).WithContext(ctx))
			cancel()
			if !json.Valid(rec.Body.Bytes()) {
				t.Errorf("%s answers %q", path, rec.Body)
			}
		}
	})
}

func FuzzPoolID(f *testing.F) {
	for _, text := range []string{"n.t|10.1.1.0/24", "n:g.t|10.1.1.0/24", "10.1.1.0/24", "x|", "|::/0", "a|b|c/1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parsePoolID(text)
		if err != nil {
			return
		}
		again, err := parsePoolID(id.String())
		if err != nil || again != id {
			t.Errorf("%q is read as %+v, written %q and read as %+v, %v", text, id, id, again, err)
		}
	})
}

var _ Engine = (*dockerd.Client)(nil)
