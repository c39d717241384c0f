package cluster

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/signal"
)

// follower is an agent that has followed the store as far as a test says.
type follower struct {
	mu                 sync.Mutex
	revision, settings int64
	ready              error
	changed            signal.Signal
}

func (f *follower) set(revision, settings int64, ready error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision, f.settings, f.ready = revision, settings, ready
	f.changed.Broadcast()
}

func (f *follower) Progress() (int64, int64, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.revision, f.settings, f.changed.Next()
}

func (f *follower) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

// netmaster takes reports on a port of its own, registered in store.
func netmaster(t *testing.T, store objdb.Store) *cluster.Members {
	t.Helper()
	m := cluster.New("127.0.0.1")
	s := httptest.NewServer(m.Handler())
	t.Cleanup(s.Close)
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	objdb.Register(t.Context(), store, objdb.ServiceInfo{ServiceName: clusterapi.MasterService, HostAddr: at.Addr().String(), Port: int(at.Port())}, nil)
	return m
}

// await waits until what the netmaster knows of the only host is as expected.
func await(t *testing.T, m *cluster.Members, what string, holds func(clusterapi.Host) bool) {
	t.Helper()
	limit := time.After(eventually.Scaled(time.Minute))
	for {
		changed := m.Changed()
		hosts := m.Hosts()
		if len(hosts) == 1 && holds(hosts[0]) {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("%s: never, but %+v", what, hosts)
		}
	}
}

// TestReports: every netmaster learns what is applied, and of what keeps it from being
// so; also one that comes later.
func TestReports(t *testing.T) {
	store, driver := memory.New(), fakedriver.New()
	log := logrus.New()
	log.SetOutput(t.Output())
	agent := &follower{ready: errors.New("waiting for the store")}
	var mu sync.Mutex
	reasons := []string{"agent: waiting for the store"}
	complain := func(now ...string) {
		mu.Lock()
		defer mu.Unlock()
		reasons = now
	}
	r := NewReporter(ReporterConfig{
		Host:    Host{Label: "host1", CtrlIP: netip.MustParseAddr("10.0.0.2"), VTEP: netip.MustParseAddr("10.9.0.2")},
		Version: "1.2", Instance: 1, Agent: agent, Driver: driver, Store: store, Log: log,
		Health: func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(reasons) },
	})
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context()) }()
	t.Cleanup(func() { <-done })

	first, second := netmaster(t, store), netmaster(t, store)
	for _, m := range []*cluster.Members{first, second} {
		await(t, m, "the first report", func(h clusterapi.Host) bool {
			return h.Host == "host1" && h.VTEP == "10.9.0.2" && h.Version == "1.2" && h.Revision == 0 && len(h.Reasons) == 1
		})
	}
	complain()
	driver.Apply(drivers.Global{FwdMode: "routing"})
	driver.Apply(drivers.Endpoint{ID: "e1"})
	agent.set(10, 4, nil)
	for _, m := range []*cluster.Members{first, second} {
		await(t, m, "the change is applied", func(h clusterapi.Host) bool {
			return h.Revision == 10 && h.Settings == 4 && h.Flows == 1 && len(h.Reasons) == 0
		})
	}
	driver.Unwell(errors.New("flows are refused"))
	complain("switch: flows are refused")
	agent.set(11, 4, nil)
	await(t, first, "the host says why it is behind", func(h clusterapi.Host) bool {
		return h.Revision == 10 && slices.Equal(h.Reasons, []string{"switch: flows are refused"})
	})
	complain()
	driver.Unwell(nil)
	await(t, first, "the host has caught up", func(h clusterapi.Host) bool { return h.Revision == 11 && len(h.Reasons) == 0 })
	late := netmaster(t, store)
	await(t, late, "a netmaster that came later knows", func(h clusterapi.Host) bool { return h.Revision == 11 })
	if got := r.Report(); got.Revision != 11 || got.Host != "host1" {
		t.Errorf("the report is %+v", got)
	}
}

// TestMuteMaster: a netmaster that takes a connection and says nothing keeps the others
// from nothing.
func TestMuteMaster(t *testing.T) {
	store := memory.New()
	held := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(held); mute.Close() })
	at := netip.MustParseAddrPort(mute.Listener.Addr().String())
	objdb.Register(t.Context(), store, objdb.ServiceInfo{ServiceName: clusterapi.MasterService, HostAddr: at.Addr().String(), Port: int(at.Port())}, nil)
	driver := fakedriver.New()
	driver.Apply(drivers.Global{FwdMode: "routing"})
	agent := &follower{}
	r := NewReporter(ReporterConfig{
		Host: Host{Label: "host1"}, Instance: 1, Agent: agent, Driver: driver, Store: store, Log: logrus.New(),
		Health: func() []string { return nil },
	})
	done := make(chan error, 1)
	go func() { done <- r.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	m := netmaster(t, store)
	for revision := range int64(5) {
		agent.set(revision, 1, nil)
		await(t, m, "applied", func(h clusterapi.Host) bool { return h.Revision == revision })
	}
}
