package flows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
)

// world is a cluster whose agents say what the test wants.
type world struct {
	mu      sync.Mutex // of hosts and past
	hosts   []string
	known   []string
	past    map[string][]flowapi.Event
	live    map[string]chan flowapi.Event
	refuses map[string]error
}

func (w *world) Hosts(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hosts), nil
}

// join adds a host that has seen something.
func (w *world) join(host string, past ...flowapi.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts, w.past = append(w.hosts, host), map[string][]flowapi.Event{host: past}
}

func (w *world) HostRecords(context.Context) (map[string]state.Host, error) {
	m := map[string]state.Host{}
	for _, h := range w.known {
		m[h] = state.Host{ID: h}
	}
	return m, nil
}

func (w *world) Flows(ctx context.Context, host string, f flowapi.Filter, take func(flowapi.Event) error) error {
	if err := w.refuses[host]; err != nil {
		return err
	}
	w.mu.Lock()
	past := slices.Clone(w.past[host])
	w.mu.Unlock()
	for _, e := range append(past, flowapi.Event{Heartbeat: &flowapi.Heartbeat{Live: true}}) {
		if err := take(e); err != nil {
			return err
		}
	}
	for f.Follow {
		select {
		case e := <-w.live[host]:
			if err := take(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// seen is what a host says of a connection from h1 to h2 that began at a second.
func seen(host, id string, second int, port uint16) flowapi.Event {
	at, verdict := flowapi.AtSource, flowapi.Allowed
	if host == "h2" {
		at = flowapi.AtDestination
	}
	return flowapi.Event{Record: &flowapi.Record{
		ID: id, Start: time.Unix(int64(second), 0), Hosts: []string{host}, Tenant: "blue", Verdict: verdict, Proto: "tcp", Count: 1,
		Src:       flowapi.End{Address: netip.MustParseAddr("10.1.1.1"), Port: port, Endpoint: "e1", Name: "client", Host: "h1"},
		Dst:       flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: 80, Endpoint: "e2", Name: "server", Host: "h2"},
		Decisions: []flowapi.Decision{{Host: host, At: at, By: flowapi.ByDefault, Verdict: verdict}},
	}}
}

// text shows what a stream tells.
func text(e flowapi.Event) string {
	switch {
	case e.Record != nil:
		return fmt.Sprintf("%s %v %s %d", e.Record.ID, e.Record.Hosts, e.Record.Verdict, len(e.Record.Decisions))
	case e.Gap != nil:
		return "gap " + e.Gap.Host
	case e.Missing != nil:
		return "missing " + e.Missing.Host + ": " + e.Missing.Error
	case e.Heartbeat.Live:
		return "live"
	}
	return "beat"
}

func list(t *testing.T, w *world, f flowapi.Filter, sees Sees) []string {
	t.Helper()
	var got []string
	err := New(t.Context(), w, w).Stream(t.Context(), f, sees, func(e flowapi.Event, _ bool) error {
		got = append(got, text(e))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return got
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What hosts have recorded is told by time, one record for the two ends of a connection.
func TestBacklog(t *testing.T) {
	denied := seen("h2", "9", 105, 3000)
	denied.Record.Verdict, denied.Record.Decisions[0].Verdict = flowapi.Denied, flowapi.Denied
	again := seen("h1", "1", 100, 1000) // a port that is used again is another connection
	later := seen("h1", "7", 160, 1000)
	service := seen("h1", "5", 120, 4000)
	service.Record.Dst = flowapi.End{Address: netip.MustParseAddr("10.9.9.9"), Port: 8080, Host: "h2"}
	service.Record.Service = &flowapi.Service{Name: "web", Address: netip.MustParseAddr("10.9.9.9"), Port: 8080}
	w := &world{hosts: []string{"h1", "h2"}, known: []string{"h1", "h2"}, past: map[string][]flowapi.Event{
		"h1": {again, seen("h1", "2", 104, 2000), seen("h1", "3", 105, 3000), service, later},
		"h2": {seen("h2", "8", 101, 1000), denied, {Gap: &flowapi.Gap{Host: "h2"}}, seen("h2", "10", 121, 4000)},
	}}
	expect(t, list(t, w, flowapi.Filter{}, nil),
		"gap h2", "h1/1 [h1 h2] allowed 2", "h1/2 [h1] allowed 1", "h1/3 [h1 h2] denied 2", "h1/5 [h1 h2] allowed 2", "h1/7 [h1] allowed 1", "live")
	expect(t, list(t, w, flowapi.Filter{Limit: 2}, nil), "gap h2", "h1/5 [h1 h2] allowed 2", "h1/7 [h1] allowed 1", "live")
	expect(t, list(t, w, flowapi.Filter{Verdict: "denied"}, nil), "gap h2", "h1/3 [h1 h2] denied 2", "live")
	expect(t, list(t, w, flowapi.Filter{To: "web"}, nil), "gap h2", "h1/5 [h1 h2] allowed 2", "live")
	expect(t, list(t, w, flowapi.Filter{}, func(tenant string) bool { return tenant == "red" }), "gap h2", "live")
}

// Hosts that do not answer are named, and hold up no other.
func TestMissing(t *testing.T) {
	w := &world{
		hosts: []string{"h1", "h2"}, known: []string{"h1", "h2", "h3"}, past: map[string][]flowapi.Event{"h1": {seen("h1", "1", 100, 1)}},
		refuses: map[string]error{"h2": errors.New("its netplugin cannot tell of connections yet; upgrade it")},
	}
	expect(t, list(t, w, flowapi.Filter{}, nil), "missing h3: its netplugin is not registered: it is down, or cannot reach the store",
		"missing h2: its netplugin cannot tell of connections yet; upgrade it", "h1/1 [h1] allowed 1", "live")
}

// A record is held back for its second end, but not for long; what comes later replaces it.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{hosts: []string{"h1", "h2"}, live: map[string]chan flowapi.Event{"h1": make(chan flowapi.Event), "h2": make(chan flowapi.Event)}}
		ctx, cancel := context.WithCancel(t.Context())
		told, ended := make(chan string, 100), make(chan error)
		go func() {
			ended <- New(t.Context(), w, w).Stream(ctx, flowapi.Filter{Follow: true}, nil, func(e flowapi.Event, _ bool) error {
				told <- text(e)
				return nil
			})
		}()
		next := func(within time.Duration, want string) {
			t.Helper()
			began := time.Now()
			if got := <-told; got != want || time.Since(began) > within {
				t.Errorf("%s after %v, expected %s", got, time.Since(began), want)
			}
		}
		next(0, "live")
		w.live["h1"] <- seen("h1", "1", 100, 1)
		w.live["h2"] <- seen("h2", "1", 160, 1) // a clock is wrong
		next(0, "h1/1 [h1 h2] allowed 2")
		w.live["h2"] <- seen("h2", "2", 100, 2)
		next(3*time.Second, "h2/2 [h2] allowed 1")
		w.live["h1"] <- seen("h1", "2", 100, 2)
		next(0, "h2/2 [h1 h2] allowed 2")
		closed := seen("h1", "1", 100, 1)
		closed.Record.End = time.Unix(105, 0)
		w.live["h1"] <- closed
		next(0, "h1/1 [h1 h2] allowed 2")
		next(Heartbeat+time.Second, "beat")
		w.join("h4", seen("h4", "1", 300, 9))
		next(newcomers+time.Second, "h4/1 [h4] allowed 1")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A tenant's user sees the connections of the tenant, without what others call the other end.
func TestScope(t *testing.T) {
	r := *seen("h1", "1", 100, 1).Record
	r.Dst.Tenant, r.Dst.Group = "red", "secret"
	r.Decisions = append(r.Decisions, flowapi.Decision{Host: "h2", At: flowapi.AtDestination, By: flowapi.ByRule, Policy: "secret", Rule: "1", Verdict: flowapi.Denied})
	only := func(name string) Sees { return func(tenant string) bool { return tenant == name } }
	if _, ok := Scope(r, only("green")); ok {
		t.Error("a record of other tenants is shown")
	}
	got, ok := Scope(r, only("blue"))
	if !ok || got.Src.Name != "client" || got.Dst.Name+got.Dst.Group+got.Dst.Endpoint != "" || got.Decisions[1].Policy != "" || got.Decisions[1].Verdict != flowapi.Denied {
		t.Errorf("%t %+v", ok, got)
	}
	if r.Decisions[1].Policy != "secret" {
		t.Error("the original was changed")
	}
	if got, ok = Scope(r, only("red")); !ok || got.Src.Name != "" || got.Dst.Name != "server" || got.Decisions[1].Policy != "secret" {
		t.Errorf("%t %+v", ok, got)
	}
	// Nor does a filter tell them.
	w := &world{hosts: []string{"h1"}, past: map[string][]flowapi.Event{"h1": {{Record: &r}}}}
	expect(t, list(t, w, flowapi.Filter{To: "secret"}, only("blue")), "live")
}

// However many connections there are, what is kept of them is bounded.
func TestBounded(t *testing.T) {
	told := 0
	j := newJoiner(func(flowapi.Record) error { told++; return nil })
	j.asked["h2"] = true
	for i := range remembered + 1000 {
		if err := j.add("h1", *seen("h1", fmt.Sprint(i), 100, uint16(i)).Record, time.Unix(100, 0)); err != nil {
			t.Fatal(err)
		}
		if err := j.release(heardBefore(time.Unix(98, 0))); err != nil {
			t.Fatal(err)
		}
	}
	if len(j.all) != remembered || len(j.byKey) != remembered || len(j.waiting) >= remembered || told < 1000 {
		t.Errorf("%d kept, %d by key, %d wait, %d told", len(j.all), len(j.byKey), len(j.waiting), told)
	}
}
