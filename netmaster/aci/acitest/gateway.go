// Package acitest stands in for the gateway of an ACI fabric, for tests.
package acitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/contiv/netplugin/utils/signal"
)

// Gateway takes the requests of the gateway's API, in their exact form only.
type Gateway struct {
	URL string

	t        testing.TB
	mu       sync.Mutex
	calls    []string
	profiles map[string]string
	refusal  string
	down     bool
	changed  signal.Signal
}

// Start serves a gateway on a loopback address until the test ends.
func Start(t testing.TB) *Gateway {
	t.Helper()
	g := &Gateway{t: t, profiles: map[string]string{}}
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	g.URL = s.URL + "/"
	return g
}

// Refuse makes the gateway answer creations with a failure; "" ends that.
func (g *Gateway) Refuse(info string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusal = info
}

// SetDown makes the gateway hang up on every request, or serve again.
func (g *Gateway) SetDown(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// Calls returns what was asked so far, "createAppProf default:shop" for instance, and
// begins again.
func (g *Gateway) Calls() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := strings.Join(g.calls, ", ")
	g.calls = nil
	return calls
}

// Profile returns the JSON text of the profile that the gateway has, "" if it has none.
func (g *Gateway) Profile(key string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.profiles[key]
}

// Await waits until the profile is as wanted.
func (g *Gateway) Await(key string, wanted func(text string) bool) {
	g.t.Helper()
	for {
		g.mu.Lock()
		text, changed := g.profiles[key], g.changed.Next()
		g.mu.Unlock()
		if wanted(text) {
			return
		}
		select {
		case <-changed:
		case <-g.t.Context().Done():
			g.t.Fatalf("profile %s: the test ends, it is %q", key, text)
		}
	}
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		hangUp(w)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		g.t.Errorf("gateway: %s %s of type %q, body %q (%v)", r.Method, r.URL, r.Header.Get("Content-Type"), body, err)
	}
	var name struct {
		Tenant string `json:"tenant"`
		Name   string `json:"app-prof"`
	}
	if err := json.Unmarshal(body, &name); err != nil {
		g.t.Errorf("gateway: %s: body %q: %v", r.URL, body, err)
	}
	call, key := strings.TrimPrefix(r.URL.Path, "/"), name.Tenant+":"+name.Name
	g.calls = append(g.calls, call+" "+key)
	switch {
	case call == "deleteAppProf":
		if want := fmt.Sprintf(`{"tenant":%q,"app-prof":%q}`, name.Tenant, name.Name); string(body) != want {
			g.t.Errorf("gateway: deleteAppProf with %s, want %s", body, want)
		}
		delete(g.profiles, key)
	case call != "createAppProf":
		g.t.Errorf("gateway: unknown call %s", r.URL)
	case g.refusal != "":
		reply(w, "failed", g.refusal)
		return
	case g.profiles[key] != "":
		g.t.Errorf("gateway: %s is created a second time", key)
	default:
		g.profiles[key] = string(body)
	}
	g.changed.Broadcast()
	reply(w, "success", "")
}

// hangUp closes the connection of a request without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func reply(w http.ResponseWriter, result, info string) {
	text, _ := json.Marshal(map[string]string{"result": result, "info": info})
	_, _ = w.Write(text)
}
