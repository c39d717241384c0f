package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/errs"
)

// registered makes Members that follow a store in which the given hosts are registered,
// and returns once it knows them.
func registered(t *testing.T, hosts ...string) (*Members, objdb.Store) {
	t.Helper()
	store, m := memory.New(), New("10.0.0.1")
	for i, host := range hosts {
		for name, port := range map[string]int{clusterapi.AgentService: clusterapi.AgentVXLANPort, clusterapi.VTEPService: 4789} {
			objdb.Register(t.Context(), store, objdb.ServiceInfo{ServiceName: name, HostAddr: fmt.Sprintf("10.0.0.%d", i+2), Port: port, Hostname: host}, nil)
		}
	}
	go m.Follow(t.Context(), store)
	await(t, m, func() bool {
		agents, known := m.Agents()
		m.mu.Lock()
		defer m.mu.Unlock()
		return known && len(agents) == len(hosts) && len(m.vteps) == len(hosts)
	})
	return m, store
}

// await waits until something holds of Members.
func await(t *testing.T, m *Members, holds func() bool) {
	t.Helper()
	limit := time.After(eventually.Scaled(time.Minute))
	for {
		changed := m.Changed()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatal("it never held")
		}
	}
}

func report(t *testing.T, m *Members, r clusterapi.Report) {
	t.Helper()
	if _, err := m.Report(r); err != nil {
		t.Fatal(err)
	}
}

func TestStates(t *testing.T) {
	m, _ := registered(t, "h1", "h2", "h3")
	now := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	m.now = func() time.Time { return now }
	report(t, m, clusterapi.Report{Host: "h2", Instance: 1, Sequence: 1, CtrlIP: "10.0.0.3", VTEP: "10.9.0.3", Version: "1.2", Revision: 7, Settings: 2, Flows: 5, Digest: "ab"})
	report(t, m, clusterapi.Report{Host: "h3", Instance: 1, Sequence: 1, Reasons: []string{"switch: away"}})
	report(t, m, clusterapi.Report{Host: "h9", Instance: 1, Sequence: 1})
	states := func() string {
		var out []string
		for _, h := range m.Hosts() {
			out = append(out, h.Host+" "+h.State)
		}
		return strings.Join(out, ", ")
	}
	if got, want := states(), "h1 silent, h2 up, h3 degraded, h9 gone"; got != want {
		t.Errorf("states: %s, want %s", got, want)
	}
	hosts := Join(m.Hosts(), map[string]Known{
		"h2":  {Label: "h2", Endpoints: 4},
		"old": {Label: "old", VTEP: "10.9.0.9", CtrlIP: "10.0.0.9", Endpoints: 1, Gone: now, CleanUp: now.Add(time.Hour)},
	}, 9, 3)
	want := map[string]clusterapi.Host{
		"h2": {
			Host: "h2", State: clusterapi.Up, CtrlIP: "10.0.0.3", VTEP: "10.9.0.3", Version: "1.2", Revision: 7, Settings: 2, Lag: 2,
			Flows: 5, Digest: "ab", Endpoints: 4, Reasons: []string{}, Reported: "2020-01-02T03:04:05Z",
		},
		"old": {
			Host: "old", State: clusterapi.Gone, CtrlIP: "10.0.0.9", VTEP: "10.9.0.9", Lag: 9, Endpoints: 1, Reasons: []string{},
			Gone: "2020-01-02T03:04:05Z", CleanUp: "2020-01-02T04:04:05Z",
		},
	}
	for _, h := range hosts {
		if w, ok := want[h.Host]; ok {
			if diff := cmp.Diff(w, h); diff != "" {
				t.Errorf("%s (-want +got):\n%s", h.Host, diff)
			}
		}
	}
	if len(hosts) != 5 || hosts[4].Host != "old" {
		t.Errorf("hosts: %v", hosts)
	}
	now = now.Add(clusterapi.StaleAfter)
	if got, want := states(), "h1 silent, h2 silent, h3 silent, h9 gone"; got != want {
		t.Errorf("states later: %s, want %s", got, want)
	}
	if m.Reporting("h2") {
		t.Error("an old report counts as a sign of life")
	}
}

// TestReportsInOrder: a report that was overtaken on its way changes nothing.
func TestReportsInOrder(t *testing.T) {
	m := New("")
	for _, r := range []clusterapi.Report{
		{Host: "h1", Instance: 1, Sequence: 2, Revision: 20},
		{Host: "h1", Instance: 1, Sequence: 1, Revision: 10},
		{Host: "h1", Instance: 2, Sequence: 1, Revision: 5},
		{Host: "h1", Instance: 1, Sequence: 3, Revision: 30},
	} {
		report(t, m, r)
	}
	if got := m.Hosts()[0].Revision; got != 5 {
		t.Errorf("revision %d, want that of the newest process, 5", got)
	}
	if _, err := m.Report(clusterapi.Report{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("a report of nobody: %v", err)
	}
}

// TestApplied: a change is applied when every registered host says so; who is not
// registered is not waited for.
func TestApplied(t *testing.T) {
	m, _ := registered(t, "h1", "h2")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	report(t, m, clusterapi.Report{Host: "h1", Instance: 1, Sequence: 1, Revision: 10, Settings: 1})
	report(t, m, clusterapi.Report{Host: "gone", Instance: 1, Sequence: 1})
	want := clusterapi.Applied{Hosts: 2, Missing: []clusterapi.Missing{{Host: "h2", Reasons: []string{"it has not reported to this netmaster yet"}}}}
	if diff := cmp.Diff(want, m.Applied(over, 10, 1)); diff != "" {
		t.Errorf("h2 has not reported (-want +got):\n%s", diff)
	}
	done := make(chan clusterapi.Applied)
	go func() { done <- m.Applied(t.Context(), 10, 1) }()
	report(t, m, clusterapi.Report{Host: "h2", Instance: 1, Sequence: 1, Revision: 9, Settings: 1, Reasons: []string{"switch: busy"}})
	want = clusterapi.Applied{Hosts: 2, Missing: []clusterapi.Missing{{Host: "h2", Reasons: []string{"switch: busy"}}}}
	if diff := cmp.Diff(want, m.Applied(over, 10, 1)); diff != "" {
		t.Errorf("h2 is behind (-want +got):\n%s", diff)
	}
	report(t, m, clusterapi.Report{Host: "h2", Instance: 1, Sequence: 2, Revision: 11})
	if got := m.Applied(over, 10, 1); len(got.Missing) != 1 {
		t.Errorf("h2 has older settings, and yet: %v", got)
	}
	report(t, m, clusterapi.Report{Host: "h2", Instance: 1, Sequence: 3, Revision: 11, Settings: 1})
	if got := <-done; got.Hosts != 2 || len(got.Missing) != 0 {
		t.Errorf("all have it, and yet: %v", got)
	}
}

// TestBounds: strangers cannot fill the memory, and many hosts are told to report less
// often.
func TestBounds(t *testing.T) {
	m, _ := registered(t, "h1")
	spacing, err := m.Report(clusterapi.Report{Host: "x", Instance: 1, Sequence: 1})
	if err != nil || spacing != minSpacing {
		t.Errorf("spacing of one host: %s, %v", spacing, err)
	}
	for i := range maxReports - 1 {
		report(t, m, clusterapi.Report{Host: fmt.Sprint(i), Instance: 1, Sequence: 1})
	}
	if _, err := m.Report(clusterapi.Report{Host: "one too many", Instance: 1, Sequence: 1}); !errs.Is(err, errs.Exhausted) {
		t.Errorf("a stranger too many: %v", err)
	}
	if spacing, err := m.Report(clusterapi.Report{Host: "h1", Instance: 1, Sequence: 1}); err != nil || spacing != maxSpacing {
		t.Errorf("a registered host: %s, %v", spacing, err)
	}
}

func TestHandler(t *testing.T) {
	m := New("")
	s := httptest.NewServer(m.Handler())
	defer s.Close()
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
	}{
		"report":    {http.MethodPost, clusterapi.PathReport, `{"host":"h1","instance":1,"sequence":1}`, http.StatusOK},
		"no host":   {http.MethodPost, clusterapi.PathReport, `{}`, http.StatusBadRequest},
		"no JSON":   {http.MethodPost, clusterapi.PathReport, `{"host":`, http.StatusBadRequest},
		"too large": {http.MethodPost, clusterapi.PathReport, `{"host":"` + strings.Repeat("x", clusterapi.MaxBody) + `"}`, http.StatusBadRequest},
		"method":    {http.MethodGet, clusterapi.PathReport, "", http.StatusNotFound},
		"path":      {http.MethodPost, "/", "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, s.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.status {
				t.Errorf("status %s, want %d", resp.Status, tt.status)
			}
		})
	}
}

// TestTables reads and writes from many sides at once, for the race detector.
func TestTables(t *testing.T) {
	m, store := registered(t, "h1", "h2")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			host := fmt.Sprintf("h%d", i)
			for n := range 50 {
				_, _ = m.Report(clusterapi.Report{Host: host, Instance: 1, Sequence: uint64(n)})
				m.Hosts()
				m.Forget("h3")
				m.Reporting(host)
			}
		})
	}
	objdb.Register(t.Context(), store, objdb.ServiceInfo{ServiceName: clusterapi.AgentService, HostAddr: "10.0.0.9", Port: 9002, Hostname: "h9"}, nil)
	wg.Wait()
	await(t, m, func() bool { agents, _ := m.Agents(); return agents["h9"] == "10.0.0.9" })
}

func FuzzReport(f *testing.F) {
	f.Add(`{"host":"h1","instance":1,"sequence":1,"reasons":["x"]}`)
	f.Add(`{"host":"h1","sequence":-1}`)
	m := New("")
	handler := m.Handler()
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, clusterapi.PathReport, strings.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest && w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d", w.Code)
		}
	})
}
