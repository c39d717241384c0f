package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
)

// leads serves a netmaster and returns its address.
func leads(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A call goes to the netmaster that leads, and is made again when nobody does yet, when
// nobody answers there, and when another one leads before a mute one has answered.
func TestMasterFollowsTheLeader(t *testing.T) {
	store := memory.New()
	m := NewMaster(nil)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Scaled(time.Minute))
	defer cancel()
	following := make(chan error, 1)
	go func() { following <- m.Follow(ctx, store) }()
	defer func() { cancel(); <-following }()
	elect := func(address string) {
		t.Helper()
		if _, err := store.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(state.LeaderKey, []byte(address))}}); err != nil {
			t.Error(err)
		}
	}

	closed := httptest.NewServer(http.NotFoundHandler())
	nobody := closed.Listener.Addr().String()
	closed.Close()
	asked := make(chan struct{})
	mute := leads(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that, nobody watches whether the caller hangs up
		close(asked)
		<-r.Context().Done()
	})
	var waiting atomic.Int32
	starting := leads(t, func(w http.ResponseWriter, _ *http.Request) {
		waiting.Add(1)
		http.Error(w, "leader not found", http.StatusInternalServerError)
	})
	good := leads(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(masterapi.RevisionHeader, "7")
		fmt.Fprintf(w, `{"EndpointConfig":{"id":"%s %s"}}`, r.Method, r.URL.Path)
	})

	type answer struct {
		ep  state.Endpoint
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		ep, err := m.CreateEndpoint(ctx, masterapi.CreateEndpointRequest{})
		answered <- answer{ep, err}
	}()
	elect(nobody)
	elect(mute)
	<-asked
	elect(starting)
	for waiting.Load() < 2 {
		if ctx.Err() != nil {
			t.Fatal("a netmaster that does not lead yet is asked once")
		}
		time.Sleep(time.Millisecond)
	}
	elect(good)
	if a := <-answered; a.err != nil || a.ep.ID != "POST "+masterapi.PathCreateEndpoint {
		t.Errorf("%+v", a)
	}
}

// What a netmaster refuses is not asked again; the kind of the error says why.
func TestMasterRefuses(t *testing.T) {
	for text, want := range map[string]errs.Kind{
		"network net1.default: address exhaustion": errs.Exhausted,
		"key not found":          errs.NotFound,
		"tenant name is not set": errs.Invalid,
	} {
		m := NewMaster(nil)
		calls := 0
		m.leader = leads(t, func(w http.ResponseWriter, _ *http.Request) {
			calls++
			http.Error(w, text, http.StatusInternalServerError)
		})
		_, err := m.CreateEndpoint(t.Context(), masterapi.CreateEndpointRequest{})
		if !errs.Is(err, want) || !strings.Contains(err.Error(), text) || calls != 1 {
			t.Errorf("%q: %v after %d calls, want kind %v", text, err, calls, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewMaster(nil).CreateEndpoint(ctx, masterapi.CreateEndpointRequest{}); !errs.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "no netmaster is the leader") {
		t.Errorf("without a leader: %v", err)
	}
}
