package hostapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/test/eventually"
)

const leadKey = "/lead"

var (
	admin = identity.Identity{Kind: identity.Anonymous, Grants: []identity.Grant{{Role: identity.Admin}}}
	host1 = identity.Identity{Kind: identity.Host, Name: "host1"}
)

// term is a leader's Server over a store.
func term(t *testing.T, store objdb.Store) (s *Server, stop func()) {
	t.Helper()
	rev, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(leadKey, []byte(time.Now().String()))}})
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	s = New(Config{Log: log, Store: store, Fence: objdb.Cmp{Type: objdb.CmpModRevision, Key: leadKey, Revision: rev}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return s, stop
}

func call(t *testing.T, s *Server, id identity.Identity, method, label, what string, body any) (int, string) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(identity.With(t.Context(), id), method, masterapi.HostPath(label, what), strings.NewReader(string(text)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func keys(t *testing.T, store objdb.Store, prefix string) []string {
	t.Helper()
	kvs, _, err := store.List(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, kv := range kvs {
		out = append(out, strings.TrimPrefix(kv.Key, prefix))
	}
	return out
}

func seed(t *testing.T, store objdb.Store, key string, v any) {
	t.Helper()
	value, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); err != nil {
		t.Fatal(err)
	}
}

var here = masterapi.Presence{CtrlIP: netip.MustParseAddr("10.0.0.1"), VTEP: netip.MustParseAddr("10.9.0.1"), VXLANPort: 4789}

// TestOwnHostOnly: a host's certificate is good for its own label; where everybody may do
// everything it is not asked for.
func TestOwnHostOnly(t *testing.T) {
	store := memory.New()
	s, _ := term(t, store)
	for _, tt := range []struct {
		id    identity.Identity
		label string
		want  int
	}{
		{host1, "host1", http.StatusOK},
		{admin, "host2", http.StatusOK},
		{host1, "host2", http.StatusForbidden},
		{identity.Identity{Kind: identity.Anonymous}, "host1", http.StatusForbidden},
		{identity.Identity{Kind: identity.User, Name: "host1", Grants: []identity.Grant{{Role: identity.Ops, Tenant: "blue"}}}, "host1", http.StatusForbidden},
		{identity.Identity{Kind: identity.Monitor, Name: "host1"}, "host1", http.StatusForbidden},
	} {
		rec := masterapi.HostRecords{Host: &state.Host{ID: tt.label, VtepIP: "10.9.0.1", CtrlIP: "10.0.0.1"}}
		if code, text := call(t, s, tt.id, http.MethodPut, tt.label, masterapi.HostRecord, rec); code != tt.want {
			t.Errorf("%s writes the record of %s: %d %s, want %d", tt.id, tt.label, code, text, tt.want)
		}
		p := here
		if tt.label == "host2" {
			p.CtrlIP = netip.MustParseAddr("10.0.0.2")
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			if code, text := call(t, s, tt.id, method, tt.label, masterapi.HostPresence, p); code != tt.want {
				t.Errorf("%s %s the presence of %s: %d %s, want %d", tt.id, method, tt.label, code, text, tt.want)
			}
		}
	}
	if got := keys(t, store, state.HostRoot); !slices.Equal(got, []string{"host1", "host2"}) {
		t.Errorf("records of hosts: %v", got)
	}
}

// TestOwnRecordsOnly: a host cannot write what says something of another one, nor anything
// that is no record.
func TestOwnRecordsOnly(t *testing.T) {
	store := memory.New()
	s, _ := term(t, store)
	seed(t, store, state.EndpointRoot+"net-mine", state.Endpoint{HomingHost: "host1"})
	seed(t, store, state.EndpointRoot+"net-other", state.Endpoint{HomingHost: "host2"})
	seed(t, store, state.OperEndpointRt+"net-other", state.OperEndpoint{ID: "net-other", HomingHost: "host2"})
	long := strings.Repeat("x", 5000)
	for name, req := range map[string]masterapi.HostRecords{
		"another host's record":         {Host: &state.Host{ID: "host2", VtepIP: "10.9.0.1", CtrlIP: "10.0.0.1"}},
		"an address that is none":       {Host: &state.Host{ID: "host1", VtepIP: "here", CtrlIP: "10.0.0.1"}},
		"another host's endpoint":       {Endpoints: map[string]*state.OperEndpoint{"net-other": {ID: "net-other", HomingHost: "host2"}}},
		"another key":                   {Endpoints: map[string]*state.OperEndpoint{"a/b": {ID: "a/b", HomingHost: "host1"}}},
		"another id":                    {Endpoints: map[string]*state.OperEndpoint{"net-mine": {ID: "net-other", HomingHost: "host1"}}},
		"a long id":                     {Endpoints: map[string]*state.OperEndpoint{long: nil}},
		"a docker network of another":   {DockerNetworks: map[string]*docknet.Record{"../host2/x": {DocknetUUID: "../host2/x"}}},
		"a docker network with two ids": {DockerNetworks: map[string]*docknet.Record{"a": {DocknetUUID: "b"}}},
		"a swarm where there is none":   {Swarm: []docknet.Record{{ID: "default.a.", TenantName: "default", NetworkName: "a", DocknetUUID: "x"}}},
	} {
		if code, text := call(t, s, host1, http.MethodPut, "host1", masterapi.HostRecord, req); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", name, code, text)
		}
	}
	// An endpoint that has moved: nothing happens, for host1 will learn of it.
	for _, rec := range []*state.OperEndpoint{nil, {ID: "net-other", HomingHost: "host1"}, {ID: "net-gone", HomingHost: "host1"}} {
		id := "net-other"
		if rec != nil {
			id = rec.ID
		}
		if code, text := call(t, s, host1, http.MethodPut, "host1", masterapi.HostRecord, masterapi.HostRecords{Endpoints: map[string]*state.OperEndpoint{id: rec}}); code != http.StatusOK {
			t.Errorf("endpoint that has moved: %d %s", code, text)
		}
	}
	if kv, err := store.Get(t.Context(), state.OperEndpointRt+"net-other"); err != nil || !strings.Contains(string(kv.Value), `"homingHost":"host2"`) {
		t.Errorf("the record of host2's endpoint: %s, %v", kv.Value, err)
	}
	mine := masterapi.HostRecords{Endpoints: map[string]*state.OperEndpoint{"net-mine": {ID: "net-mine", HomingHost: "host1"}}}
	if code, text := call(t, s, host1, http.MethodPut, "host1", masterapi.HostRecord, mine); code != http.StatusOK {
		t.Errorf("its own: %d %s", code, text)
	}
	if got := keys(t, store, state.OperEndpointRt); !slices.Equal(got, []string{"net-mine", "net-other"}) {
		t.Errorf("operational records: %v", got)
	}
}

// TestFenced: a former leader writes nothing.
func TestFenced(t *testing.T) {
	store := memory.New()
	old, _ := term(t, store)
	term(t, store)
	rec := masterapi.HostRecords{Host: &state.Host{ID: "host1", VtepIP: "10.9.0.1", CtrlIP: "10.0.0.1"}}
	if code, text := call(t, old, host1, http.MethodPut, "host1", masterapi.HostRecord, rec); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s, want 503", code, text)
	}
	if got := keys(t, store, state.HostRoot); got != nil {
		t.Errorf("records: %v", got)
	}
}

// TestPresence: an agent is in the registry as it always was, through a change of leader
// without a gap, until it leaves; one that is silent goes by itself.
func TestPresence(t *testing.T) {
	store := memory.New()
	s, stop := term(t, store)
	registry := []string{"netplugin.vtep/10.9.0.1:4789", "netplugin/10.0.0.1:9002", "netplugin/10.0.0.1:9003"}
	if code, text := call(t, s, host1, http.MethodPut, "host1", masterapi.HostPresence, here); code != http.StatusOK {
		t.Fatal(code, text)
	}
	eventually.True(t, "host1 is registered", func() bool { return slices.Equal(keys(t, store, state.ServiceRoot), registry) })
	kv, err := store.Get(t.Context(), state.ServiceRoot+registry[1])
	if want := `{"ServiceName":"netplugin","Role":"","Version":"","TTL":10,"HostAddr":"10.0.0.1","Port":9002,"Hostname":"host1"}`; err != nil || string(kv.Value) != want {
		t.Errorf("entry %s, %v; want %s", kv.Value, err, want)
	}
	other := here
	other.VTEP = netip.MustParseAddr("10.9.0.2")
	if code, text := call(t, s, admin, http.MethodPut, "host2", masterapi.HostPresence, other); code != http.StatusConflict {
		t.Errorf("host2 with the control address of host1: %d %s, want 409", code, text)
	}

	watch := store.Watch(t.Context(), state.ServiceRoot)
	<-watch
	stop()
	next, _ := term(t, store)
	eventually.True(t, "the next leader has taken host1 over", func() bool {
		next.presence.mu.Lock()
		defer next.presence.mu.Unlock()
		return next.presence.hosts["host1"].Presence == here
	})
	select {
	case b := <-watch:
		t.Errorf("the registry has changed with the leader: %+v", b)
	default:
	}

	// Silence: as if the agent had said nothing for ServiceTTL.
	next.presence.mu.Lock()
	next.presence.hosts["host1"] = seen{here, time.Now().Add(-objdb.ServiceTTL)}
	next.presence.mu.Unlock()
	next.presence.wake()
	eventually.True(t, "a silent host is not registered", func() bool { return keys(t, store, state.ServiceRoot) == nil })
	call(t, next, host1, http.MethodPut, "host1", masterapi.HostPresence, here)
	eventually.True(t, "it is again", func() bool { return len(keys(t, store, state.ServiceRoot)) == 3 })

	// An earlier agent, which registers itself, has taken the address over.
	seed(t, store, state.ServiceRoot+registry[1], objdb.ServiceInfo{Hostname: "host1"})
	call(t, next, host1, http.MethodDelete, "host1", masterapi.HostPresence, nil)
	eventually.True(t, "what host1 has had written is gone, and nothing else", func() bool {
		return slices.Equal(keys(t, store, state.ServiceRoot), registry[1:2]) && keys(t, store, presentRoot) == nil
	})
}
