package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// maxReports bounds how many hosts may report; beyond it, reports of unknown hosts are
// refused.
const maxReports = 20_000

// A host's reports are spaced so that all hosts together send no more than one per
// perReport.
const (
	perReport  = time.Millisecond
	minSpacing = 100 * time.Millisecond
	maxSpacing = 2 * time.Second
)

// Members is the agents of a cluster. Create it with New. Safe for concurrent use.
type Members struct {
	now     func() time.Time
	address string

	mu      sync.Mutex
	agents  map[string]string // control address by label, of those registered
	vteps   map[string]string // tunnel address by label, of those registered
	known   bool              // the registry has been read
	reports map[string]received
	masters map[string]Master // by address
	changed signal.Signal     // broadcast when something of the above has changed

	removedHosts, removedEndpoints prometheus.Counter
}

// received is a report with its time of arrival.
type received struct {
	clusterapi.Report
	at time.Time
}

// New makes an empty Members. address is this netmaster's own, for display.
func New(address string) *Members {
	return &Members{
		removedHosts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_netmaster_removed_hosts_total", Help: "Hosts that stayed away and have been removed.",
		}),
		removedEndpoints: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "contiv_netmaster_removed_host_endpoints_total", Help: "Endpoints that have been removed with their host.",
		}),
		now: time.Now, address: address, agents: map[string]string{}, vteps: map[string]string{}, reports: map[string]received{}, masters: map[string]Master{},
	}
}

// Follow keeps the registered agents current until ctx ends.
func (m *Members) Follow(ctx context.Context, store objdb.Store) {
	agents := objdb.WatchServices(ctx, store, clusterapi.AgentService)
	vteps := objdb.WatchServices(ctx, store, clusterapi.VTEPService)
	for {
		var (
			list []objdb.ServiceInfo
			ok   bool
			into *map[string]string
		)
		select {
		case list, ok = <-agents:
			into = &m.agents
		case list, ok = <-vteps:
			into = &m.vteps
		}
		if !ok {
			return
		}
		byLabel := make(map[string]string, len(list))
		for _, info := range list {
			byLabel[info.Hostname] = info.HostAddr
		}
		m.mu.Lock()
		*into = byLabel
		m.known = m.known || into == &m.agents
		m.broadcast()
		m.mu.Unlock()
	}
}

// broadcast wakes all that wait for a change. The caller holds mu.
func (m *Members) broadcast() {
	m.changed.Broadcast()
}

// Address is this netmaster's own IP address.
func (m *Members) Address() string { return m.address }

// Changed is closed when something has changed since the call.
func (m *Members) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed.Next()
}

// Report takes a report, unless a newer one of the same host is known, and returns how
// long the agent should wait before the next. An error is of kind Invalid or Exhausted.
func (m *Members) Report(r clusterapi.Report) (spacing time.Duration, err error) {
	if r.Host == "" {
		return 0, errs.New(errs.Invalid, "a report names no host")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.reports[r.Host]
	if _, registered := m.agents[r.Host]; !ok && !registered && len(m.reports) >= maxReports {
		return 0, errs.New(errs.Exhausted, "%d hosts report already, host %s is not registered", len(m.reports), r.Host)
	}
	if !ok || r.Instance > old.Instance || r.Instance == old.Instance && r.Sequence > old.Sequence {
		m.reports[r.Host] = received{r, m.now()}
		m.broadcast()
	}
	return min(max(time.Duration(len(m.reports))*perReport, minSpacing), maxSpacing), nil
}

// Agents returns the control addresses of the registered agents by host label. known
// says whether the registry has been read at all.
func (m *Members) Agents() (addresses map[string]string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.agents), m.known
}

// Reporting reports whether a host's agent has sent a report in the last StaleAfter.
func (m *Members) Reporting(host string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.reports[host]
	return ok && m.now().Sub(r.at) < clusterapi.StaleAfter
}

// Forget drops the report of a host that is no longer part of the cluster.
func (m *Members) Forget(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, registered := m.agents[host]; !registered {
		delete(m.reports, host)
		m.broadcast()
	}
}

// Hosts lists the hosts that are registered or have reported, sorted by label. Lag,
// Endpoints, Gone and CleanUp are for others to fill in.
func (m *Members) Hosts() []clusterapi.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	labels := map[string]bool{}
	for label := range m.agents {
		labels[label] = true
	}
	for label := range m.reports {
		labels[label] = true
	}
	out := make([]clusterapi.Host, 0, len(labels))
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, m.host(label))
	}
	return out
}

// host shows one host. The caller holds mu.
func (m *Members) host(label string) clusterapi.Host {
	ctrl, registered := m.agents[label]
	h := clusterapi.Host{Host: label, CtrlIP: ctrl, VTEP: m.vteps[label], Reasons: []string{}}
	r, reported := m.reports[label]
	if reported {
		h.CtrlIP, h.VTEP, h.Version = r.CtrlIP, r.VTEP, r.Version
		h.Revision, h.Settings, h.Flows, h.Digest = r.Revision, r.Settings, r.Flows, r.Digest
		h.Reasons = append(h.Reasons, r.Reasons...)
		h.Reported = stamp(r.at)
	}
	switch {
	case !registered:
		h.State = clusterapi.Gone
	case !reported || m.now().Sub(r.at) >= clusterapi.StaleAfter:
		h.State = clusterapi.Silent
	case len(r.Reasons) > 0:
		h.State = clusterapi.Degraded
	default:
		h.State = clusterapi.Up
	}
	return h
}

// Known is what is stored of a host.
type Known struct {
	Label, VTEP, CtrlIP string
	Node                string // its Node in a cluster of Kubernetes; "" for none
	Endpoints           int
	Gone, CleanUp       time.Time // since when it is not registered, and when that has consequences; zero: it is
}

// Join adds the stored data to hosts, and the hosts that exist in the store only.
// revision and settings are what a host must have applied to be up to date.
func Join(hosts []clusterapi.Host, stored map[string]Known, revision, settings int64) []clusterapi.Host {
	seen := map[string]bool{}
	for _, h := range hosts {
		seen[h.Host] = true
	}
	for label := range stored {
		if !seen[label] {
			hosts = append(hosts, clusterapi.Host{Host: label, State: clusterapi.Gone, Reasons: []string{}})
		}
	}
	for i := range hosts {
		h := &hosts[i]
		if k, ok := stored[h.Host]; ok {
			h.VTEP, h.CtrlIP = cmp.Or(h.VTEP, k.VTEP), cmp.Or(h.CtrlIP, k.CtrlIP)
			h.Endpoints, h.Gone, h.CleanUp = k.Endpoints, stamp(k.Gone), stamp(k.CleanUp)
		}
		h.Lag = max(revision-h.Revision, settings-h.Settings, 0)
	}
	slices.SortFunc(hosts, func(a, b clusterapi.Host) int { return cmp.Compare(a.Host, b.Host) })
	return hosts
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Applied waits until every registered host has applied what has been written up to
// revision, and the global settings of revision settings, or ctx ends, and returns those
// that have not.
func (m *Members) Applied(ctx context.Context, revision, settings int64) clusterapi.Applied {
	for {
		a, changed := m.applied(revision, settings)
		if len(a.Missing) == 0 {
			return a
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return a
		}
	}
}

func (m *Members) applied(revision, settings int64) (clusterapi.Applied, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := clusterapi.Applied{Hosts: len(m.agents), Missing: []clusterapi.Missing{}}
	for _, label := range slices.Sorted(maps.Keys(m.agents)) {
		r, ok := m.reports[label]
		if ok && r.Revision >= revision && r.Settings >= settings {
			continue
		}
		missing := clusterapi.Missing{Host: label, Reasons: append([]string{}, r.Reasons...)}
		if !ok {
			missing.Reasons = append(missing.Reasons, "it has not reported to this netmaster yet")
		}
		a.Missing = append(a.Missing, missing)
	}
	return a, m.changed.Next()
}
