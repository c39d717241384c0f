package agents

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
)

// TestAnnounceToAll: every host is asked once, although it has two ports, and neither one
// that refuses nor one that is mute keeps the others from it.
func TestAnnounceToAll(t *testing.T) {
	store := memory.New()
	register := func(host string, handler http.HandlerFunc) {
		t.Helper()
		for range 2 {
			s := httptest.NewServer(handler)
			t.Cleanup(s.Close)
			at := netip.MustParseAddrPort(s.Listener.Addr().String())
			info := objdb.ServiceInfo{ServiceName: clusterapi.AgentService, HostAddr: at.Addr().String(), Port: int(at.Port()), Hostname: host}
			value, err := json.Marshal(info)
			if err != nil {
				t.Fatal(err)
			}
			put := objdb.Put(state.ServiceRoot+clusterapi.AgentService+"/"+info.Endpoint(), value)
			if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{put}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	asked := make(chan string, 8)
	well := func(host string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var req clusterapi.AnnounceRequest
			if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Group != 5 || r.URL.Path != clusterapi.PathAnnounce {
				t.Errorf("asked for %s %+v, %v", r.URL.Path, req, err)
			}
			asked <- host
			_ = json.NewEncoder(w).Encode(clusterapi.AnnounceResponse{Endpoints: 2})
		}
	}
	held := make(chan struct{})
	register("h1", well("h1"))
	register("h2", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	})
	register("h3", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no switch", http.StatusInternalServerError)
	})
	register("h4", well("h4"))
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := New(store, 0, nil).Announce(t.Context(), 5)
		done <- result{n, err}
	}()
	hosts := map[string]bool{<-asked: true, <-asked: true}
	if !hosts["h1"] || !hosts["h4"] {
		t.Errorf("asked were %v", hosts)
	}
	close(held) // only now does h2 end its silence, with an answer that is none
	got := <-done
	n, err := got.n, got.err
	if n != 4 {
		t.Errorf("%d endpoints are announced, want 4", n)
	}
	if err == nil || !strings.Contains(err.Error(), "host h2") || !strings.Contains(err.Error(), "host h3 announce group 5: no switch") ||
		strings.Contains(err.Error(), "h1") || strings.Contains(err.Error(), "h4") {
		t.Errorf("error: %v", err)
	}
	if len(asked) != 0 {
		t.Errorf("%d further calls of two hosts", len(asked))
	}
}
