package hostgc

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/netmaster/intent/intenttest"
	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
)

// hostsOf is a cluster of hosts for tests: a store, what netmaster knows of the agents,
// and their registrations.
type hostsOf struct {
	t       *testing.T
	store   *memory.Store
	members *cluster.Members
	agents  map[string]*objdb.Registration
}

func newHosts(t *testing.T) *hostsOf {
	h := &hostsOf{t: t, store: memory.New(), members: cluster.New("127.0.0.1"), agents: map[string]*objdb.Registration{}}
	go h.members.Follow(t.Context(), h.store)
	return h
}

// register registers a host's agent, and returns when it is known to be.
func (h *hostsOf) register(host string) {
	h.t.Helper()
	h.agents[host] = objdb.Register(h.t.Context(), h.store, objdb.ServiceInfo{
		ServiceName: clusterapi.AgentService, HostAddr: "127.0.0.1", Port: 9002 + len(h.agents), Hostname: host,
	}, nil)
	h.put(state.HostRoot+host, `{"id":"`+host+`","vtepIP":"10.9.0.2"}`)
	h.known(host, true)
}

// leave ends a host's registration.
func (h *hostsOf) leave(host string) {
	h.t.Helper()
	if err := h.agents[host].Close(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.known(host, false)
}

func (h *hostsOf) known(host string, want bool) {
	for {
		changed := h.members.Changed()
		agents, known := h.members.Agents()
		if _, here := agents[host]; known && here == want {
			return
		}
		<-changed
	}
}

func (h *hostsOf) put(key, value string) {
	h.t.Helper()
	if _, err := h.store.Commit(h.t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Put(key, []byte(value))}}); err != nil {
		h.t.Fatal(err)
	}
}

// lead starts a term that ends with the returned function. With a grace of hours
// nothing happens by itself.
func (h *hostsOf) lead(grace time.Duration) (term, func()) {
	h.t.Helper()
	return h.leadWith(Config{Grace: grace})
}

func (h *hostsOf) leadWith(cfg Config) (term, func()) {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	lead, err := intenttest.Lead(ctx, h.store)
	if err != nil {
		h.t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg.Log, cfg.Store, cfg.Fence, cfg.Members = log, h.store, lead.Fence(), h.members
	var made term
	e, err := intent.New(ctx, intent.Config{
		Log: log, ClusterMode: "test", FwdMode: "routing", Infra: "default",
		Loops: func(e *intent.Engine) []reconcile.Loop {
			made = term{engine: e, Collector: New(cfg, e)}
			return []reconcile.Loop{made}
		},
	}, h.store, lead)
	if err != nil {
		h.t.Fatal(err)
	}
	end := func() { stop(); <-e.Done() }
	h.t.Cleanup(end)
	return made, end
}

// term is a Collector with its intent.
type term struct {
	*Collector
	engine *intent.Engine
}

// endpoint makes an endpoint on a host, with what its agent reports of it.
func (h *hostsOf) endpoint(e term, name, host string) {
	h.t.Helper()
	ch, err := e.engine.CreateEndpoint(h.t.Context(), masterapi.CreateEndpointRequest{
		TenantName: "default", NetworkName: "n1", ConfigEP: masterapi.ConfigEP{Container: name, Host: host},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.put(state.OperEndpointRt+ch.Endpoint.ID, `{"id":"`+ch.Endpoint.ID+`"}`)
}

// left lists the keys under a prefix, without it.
func (h *hostsOf) left(prefix string) []string {
	h.t.Helper()
	kvs, _, err := h.store.List(h.t.Context(), prefix)
	if err != nil {
		h.t.Fatal(err)
	}
	keys := []string{}
	for _, kv := range kvs {
		keys = append(keys, strings.TrimPrefix(kv.Key, prefix))
	}
	return keys
}

func (h *hostsOf) wantLeft(what, prefix string, want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), h.left(prefix)); diff != "" {
		h.t.Errorf("%s left (-want +got):\n%s", what, diff)
	}
}

func (h *hostsOf) eventually(what string, holds func() bool) {
	h.t.Helper()
	eventually.True(h.t, what, holds)
}

func networkN1(t *testing.T, e term) {
	t.Helper()
	body := []byte(`{"tenantName":"default","networkName":"n1","encap":"vxlan","subnet":"10.1.1.0/24"}`)
	for _, c := range e.engine.Collections() {
		if c.Name() != "networks" {
			continue
		}
		if _, err := c.Put(t.Context(), "default:n1", body); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeadHost: a host that stays down is removed with its endpoints, and nothing else is;
// also when only its endpoints mention it, and when no other host is registered.
func TestDeadHost(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	h.register("h2")
	e, _ := h.lead(50 * time.Millisecond)
	networkN1(t, e)
	h.endpoint(e, "a", "h1")
	h.endpoint(e, "b", "h2")
	h.endpoint(e, "b1", "h2")
	h.leave("h2")
	h.eventually("h2 is removed", func() bool { return len(h.left(state.HostRoot)) == 1 })
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a")
	h.wantLeft("operational records", state.OperEndpointRt, "n1.default-a")
	h.wantLeft("hosts down", downRoot)
	if n := len(h.left(state.IPAMRoot)); n != 1 {
		t.Errorf("%d addresses are claimed, want 1", n)
	}
	h.leave("h1") // the last one
	h.eventually("h1 is removed", func() bool { return len(h.left(state.HostRoot)) == 0 })
	h.wantLeft("endpoints", state.EndpointRoot)
}

// TestHostComesBack: within the grace period a host keeps everything, and that it is down is
// forgotten.
func TestHostComesBack(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	e, _ := h.lead(time.Hour)
	networkN1(t, e)
	h.endpoint(e, "a", "h1")
	h.leave("h1")
	if err := e.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLeft("hosts down", downRoot, "h1")
	hosts, err := e.Hosts(t.Context())
	if err != nil || hosts["h1"].Gone.IsZero() || hosts["h1"].CleanUp.Sub(hosts["h1"].Gone) != time.Hour {
		t.Errorf("the host is shown as %+v, %v", hosts["h1"], err)
	}
	h.register("h1")
	if err := e.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLeft("hosts down", downRoot)
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a")
}

// TestHostDownSurvives: a new leader counts the grace period from when the old one missed the
// host, but looks for a while itself before it acts.
func TestHostDownSurvives(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	first, end := h.lead(time.Hour)
	networkN1(t, first)
	h.endpoint(first, "a", "h1")
	h.leave("h1")
	end()
	long := time.Now().Add(-2 * time.Hour).UTC()
	h.put(downRoot+"h1", `{"since":"`+long.Format(time.RFC3339)+`"}`)
	second, _ := h.lead(time.Hour)
	h.eventually("the host is known to be down", func() bool {
		since, _, away := second.down.get("h1")
		return away && since.Before(long.Add(time.Second))
	})
	if err := second.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a")
	second.down.set("h1", long, long) // as if it had looked for long enough
	if err := second.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLeft("endpoints", state.EndpointRoot)
	h.wantLeft("hosts", state.HostRoot)
	h.wantLeft("hosts down", downRoot)
}

// TestProofs: whatever has been observed of a host, it keeps everything while the store says
// that it is registered, or its agent reports.
func TestProofs(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	e, _ := h.lead(time.Hour)
	networkN1(t, e)
	h.endpoint(e, "a", "h1")
	long := time.Now().Add(-2 * time.Hour)
	e.down.set("h1", long, long)
	if n, err := e.removeHost(t.Context(), "h1"); n != 0 || err != nil {
		t.Errorf("a registered host: %d endpoints, %v", n, err)
	}
	if _, err := e.CollectGarbage(t.Context(), "h1", 0, false); !errs.Is(err, errs.InUse) {
		t.Errorf("a registered host, by hand: %v", err)
	}
	h.leave("h1")
	if _, err := h.members.Report(clusterapi.Report{Host: "h1", Instance: 1, Sequence: 1}); err != nil {
		t.Fatal(err)
	}
	if n, err := e.removeHost(t.Context(), "h1"); n != 0 || err != nil {
		t.Errorf("a host that reports: %d endpoints, %v", n, err)
	}
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a")
	h.wantLeft("hosts", state.HostRoot, "h1")
}

// TestFormerLeaderRemovesNothing: only who leads removes, whatever else it believes.
func TestFormerLeaderRemovesNothing(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	former, _ := h.lead(time.Hour)
	networkN1(t, former)
	h.endpoint(former, "a", "h1")
	h.leave("h1")
	h.lead(time.Hour)
	long := time.Now().Add(-2 * time.Hour)
	former.down.set("h1", long, long)
	if _, err := former.removeHost(t.Context(), "h1"); err == nil {
		t.Error("a former leader has removed a host")
	}
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a")
	h.wantLeft("hosts", state.HostRoot, "h1")
}

// TestHalfRemoved: a removal that the store interrupted is finished later, and nothing is
// forgotten meanwhile.
func TestHalfRemoved(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	e, _ := h.lead(time.Hour)
	networkN1(t, e)
	h.endpoint(e, "a", "h1")
	h.endpoint(e, "b", "h1")
	h.leave("h1")
	if err := e.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	away := errs.Wrap(errs.Unavailable, errors.New("the store is unavailable"))
	h.store.OnCommit(func(txn objdb.Txn) memory.Fault {
		for _, op := range txn.Then {
			if strings.HasPrefix(op.Key, state.HostRoot) {
				return memory.Fault{Before: away}
			}
		}
		return memory.Fault{}
	})
	if _, err := e.removeHost(t.Context(), "h1"); err == nil {
		t.Error("no error while the store is unavailable")
	}
	h.wantLeft("hosts down", downRoot, "h1")
	h.store.OnCommit(func(objdb.Txn) memory.Fault { return memory.Fault{} })
	if n, err := e.removeHost(t.Context(), "h1"); n != 0 || err != nil {
		t.Errorf("the rest: %d endpoints, %v", n, err)
	}
	h.wantLeft("hosts", state.HostRoot)
	h.wantLeft("hosts down", downRoot)
}

// TestGarbage: garbage collection on request does not wait for the grace period, and a dry run
// removes nothing.
func TestGarbage(t *testing.T) {
	h := newHosts(t)
	h.register("h1")
	h.register("h2")
	e, _ := h.lead(time.Hour)
	networkN1(t, e)
	h.endpoint(e, "a", "h1")
	h.endpoint(e, "b", "h2")
	h.leave("h2")
	if err := e.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if gone, err := e.CollectGarbage(t.Context(), "", time.Hour, false); err != nil || len(gone) != 0 {
		t.Errorf("away for moments: %v, %v", gone, err)
	}
	if _, err := e.CollectGarbage(t.Context(), "h2", time.Hour, false); !errs.Is(err, errs.InUse) {
		t.Errorf("away for moments, named: %v", err)
	}
	if _, err := e.CollectGarbage(t.Context(), "h9", 0, false); !errs.Is(err, errs.NotFound) {
		t.Errorf("a host nobody knows: %v", err)
	}
	for _, dryRun := range []bool{true, false} {
		gone, err := e.CollectGarbage(t.Context(), "", 0, dryRun)
		if err != nil || len(gone) != 1 || gone[0].Host != "h2" || cmp.Diff([]string{"n1.default-b"}, gone[0].Endpoints) != "" {
			t.Errorf("garbage: %v, %v", gone, err)
		}
		if dryRun {
			h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a", "n1.default-b")
		}
	}
	h.wantLeft("endpoints", state.EndpointRoot, "n1.default-a")
	h.wantLeft("hosts", state.HostRoot, "h1")
}
