package flowlog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/fakedriver"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const allowRule, denyRule = "blue:web:blue:guard:blue:guard:1:inRx", "blue:web:blue:guard:blue:guard:2:inRx"

// clock is a time that tests set.
type clock struct{ now time.Time }

func (c *clock) add(d time.Duration) { c.now = c.now.Add(d) }

// host is a log of host1 with two containers there and one elsewhere.
type host struct {
	*Log
	t *testing.T
	*clock
	driver *fakedriver.Driver
}

// podAt knows a pod by its address.
func podAt(tenant string, a netip.Addr) string {
	if tenant == "blue" && a == netip.MustParseAddr("10.1.1.3") {
		return "shop/far"
	}
	return ""
}

func newHost(t *testing.T, size int) host {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	log := logrus.New()
	log.SetOutput(io.Discard)
	l := New(Config{Host: "host1", Size: size, Now: func() time.Time { return c.now }, PodAt: podAt, Log: log})
	put := func(key string, v any) objdb.Event {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return objdb.Event{KV: objdb.KV{Key: key, Value: raw}}
	}
	endpoint := func(name, host, v4, v6 string) objdb.Event {
		id := "net.blue-" + name
		return put(state.EndpointRoot+id, state.Endpoint{
			ID: id, NetID: "net.blue", EndpointID: name, EPCommonName: "/" + name, ServiceName: "g-" + name, HomingHost: host, IPAddress: v4, IPv6Address: v6,
		})
	}
	l.Apply(objdb.Batch{Snapshot: true, Events: []objdb.Event{
		put(state.NetworkRoot+"net.blue", state.Network{ID: "net.blue", Tenant: "blue", NetworkName: "net"}),
		endpoint("web", "host1", "10.1.1.1", "2001:db8::1"), endpoint("app", "host1", "10.1.1.2", "2001:db8::2"), endpoint("far", "host2", "10.1.1.3", ""),
		put(state.HostRoot+"host2", state.Host{ID: "host2", VtepIP: "192.168.60.11", CtrlIP: "192.168.2.11"}),
	}})
	for _, id := range []string{allowRule, denyRule} {
		l.Declare(drivers.Rule{Tenant: "blue", Rule: ofnet.Rule{ID: id}})
	}
	l.Declare(drivers.Service{ID: "shop:blue", Tenant: "blue", VIPs: []netip.Addr{netip.MustParseAddr("10.9.9.9")}, Ports: []drivers.ServicePort{{Proto: 6, Port: 8080}}})
	l.Declare(drivers.PolicyRuleSet{ID: "s", Policies: []string{"ns/np"}, Allows: []ofnet.Allow{{Name: "ns/np ingress[0]"}}})
	return host{l, t, c, fakedriver.New()}
}

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// conn is a connection of tenant blue from app to web.
func conn(sport int, change func(*drivers.Connection)) drivers.Connection {
	c := drivers.Connection{
		VRF: 1, Tenant: "blue", Proto: 6, Src: at(fmt.Sprintf("10.1.1.2:%d", sport)), Dst: at("10.1.1.1:80"), Decided: true, Rule: ofnet.NumberOf(allowRule),
	}
	if change != nil {
		change(&c)
	}
	return c
}

// reads has the log read a table.
func (h host) reads(all ...drivers.Connection) {
	h.t.Helper()
	h.driver.Track(nil, all...)
	if err := h.poll(h.t.Context(), h.driver); err != nil {
		h.t.Fatal(err)
	}
}

// events are what a filter selects.
func (h host) events(f flowapi.Filter) (records []flowapi.Record, gaps []flowapi.Gap) {
	h.t.Helper()
	live := 0
	err := h.Stream(h.t.Context(), f, func(e *flowapi.Event) error {
		switch {
		case e.Record != nil:
			records = append(records, *e.Record)
		case e.Gap != nil:
			gaps = append(gaps, *e.Gap)
		case e.Heartbeat.Live:
			live++
		}
		return nil
	}, func() error { return nil })
	if err != nil || live != 1 {
		h.t.Fatalf("stream: %v, %d times live", err, live)
	}
	return records, gaps
}

func (h host) one(f flowapi.Filter) flowapi.Record {
	h.t.Helper()
	all, _ := h.events(f)
	if len(all) != 1 {
		h.t.Fatalf("%d records, want one: %+v", len(all), all)
	}
	return all[0]
}

// TestConnection: what allowed a connection is told with the names of both ends, from when
// it is first seen until it is gone.
func TestConnection(t *testing.T) {
	h := newHost(t, 0)
	h.reads(conn(40000, nil))
	r := h.one(flowapi.Filter{})
	want := flowapi.Decision{Host: "host1", At: flowapi.AtBoth, By: flowapi.ByRule, Policy: "guard", Rule: "1", Verdict: flowapi.Allowed}
	if r.Tenant != "blue" || r.Proto != "tcp" || r.Verdict != flowapi.Allowed || len(r.Decisions) != 1 || r.Decisions[0] != want || !r.Start.Equal(h.now) || !r.End.IsZero() || r.Count != 1 {
		t.Errorf("%+v", r)
	}
	src := flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: 40000, Endpoint: "net.blue-app", Name: "app", Group: "g-app", Network: "net", Host: "host1"}
	if r.Src != src {
		t.Errorf("from %+v, want %+v", r.Src, src)
	}
	// Rules and containers that are gone keep their names, in records and in what is tracked.
	h.Withdraw(drivers.KindRule, allowRule)
	h.Apply(objdb.Batch{Events: []objdb.Event{{KV: objdb.KV{Key: state.EndpointRoot + "net.blue-web"}, Deleted: true}}})
	h.add(time.Second)
	h.reads(conn(40000, func(c *drivers.Connection) { c.Closed, c.Packets, c.Bytes = true, 7, 700 }), conn(40001, nil))
	h.add(time.Second)
	h.reads()
	all, gaps := h.events(flowapi.Filter{})
	if len(all) != 2 || all[0].Dst.Name != "web" || all[1].Decisions[0] != want && all[1].Decisions[0].Rule != "1" || len(gaps) != 0 {
		t.Fatalf("%+v, %v", all, gaps)
	}
	if end := h.now.Add(-time.Second); !all[0].End.Equal(end) || all[0].Packets != 7 || all[0].Bytes != 700 || !all[1].End.Equal(h.now) || all[0].ID >= all[1].ID {
		t.Errorf("%+v", all)
	}
	if after, _ := h.events(flowapi.Filter{After: all[0].ID}); len(after) != 1 || after[0].ID != all[1].ID {
		t.Errorf("after the first: %+v", after)
	}
	if newest, _ := h.events(flowapi.Filter{Limit: 1}); len(newest) != 1 || newest[0].ID != all[1].ID {
		t.Errorf("the newest: %+v", newest)
	}
}

// TestDecisions: numbers of both ends' policies, services, and what is only translated.
func TestDecisions(t *testing.T) {
	number := ofnet.NumberOf("ns/np ingress[0]")
	for name, c := range map[string]struct {
		tracked []drivers.Connection
		want    string
	}{
		"no rule":      {[]drivers.Connection{conn(1, func(c *drivers.Connection) { c.Rule = 0 })}, "both default /"},
		"policies":     {[]drivers.Connection{conn(1, func(c *drivers.Connection) { c.Out, c.In, c.Rule = number, number, 0 })}, "source network-policy ns/np/ingress[0] destination network-policy ns/np/ingress[0]"},
		"all of them":  {[]drivers.Connection{conn(1, func(c *drivers.Connection) { c.Out, c.In = number, number })}, "source network-policy ns/np/ingress[0] destination network-policy ns/np/ingress[0] both rule guard/1"},
		"unknown rule": {[]drivers.Connection{conn(1, func(c *drivers.Connection) { c.Rule = 0xabc })}, "both rule ?/abc"},
		"far":          {[]drivers.Connection{conn(1, func(c *drivers.Connection) { c.Src = at("10.1.1.3:1") })}, "destination rule guard/1"},
		"to a service": {[]drivers.Connection{
			conn(1, func(c *drivers.Connection) { c.Decided, c.Rule, c.Service = false, 0, at("10.9.9.9:8080") }), conn(1, nil),
		}, "both rule guard/1 by shop"},
		"translated, but not let pass": {[]drivers.Connection{conn(1, func(c *drivers.Connection) { c.Decided, c.Service = false, at("10.9.9.9:8080") })}, "none"},
		"nothing decides there": {[]drivers.Connection{conn(1, func(c *drivers.Connection) {
			c.Decided, c.Rule, c.Tenant, c.VRF, c.Service = false, 0, "red", 2, at("10.9.9.9:8080")
		})}, "source default / by "},
	} {
		h := newHost(t, 0)
		h.reads(c.tracked...)
		got := "none"
		if all, _ := h.events(flowapi.Filter{}); len(all) == 1 {
			got = ""
			for _, d := range all[0].Decisions {
				got += fmt.Sprintf(" %s %s %s/%s", d.At, d.By, d.Policy, d.Rule)
			}
			if s := all[0].Service; s != nil {
				got += " by " + s.Name
			}
			got = got[1:]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// denied is a packet from app that rule 2 denies.
func denied(port int, change func(*drivers.Denied)) drivers.Denied {
	d := drivers.Denied{Tenant: "blue", Endpoint: "net.blue-app", DeniedPacket: ofnet.DeniedPacket{
		By: ofnet.DeniedByRule, Number: ofnet.NumberOf(denyRule), VRF: 1, EthType: 0x800, Proto: 6,
		Src: at("10.1.1.2:40000"), Dst: netip.AddrPortFrom(netip.MustParseAddr("10.1.1.1"), uint16(port)),
	}}
	if change != nil {
		change(&d)
	}
	return d
}

// TestDenials: what is denied within a second is one record, and says what denied it.
func TestDenials(t *testing.T) {
	h := newHost(t, 0)
	for range 5 {
		h.deny(denied(81, nil))
		h.add(100 * time.Millisecond)
	}
	h.add(time.Second)
	h.sweep()
	h.deny(denied(81, nil))
	all, _ := h.events(flowapi.Filter{Verdict: "denied"})
	want := flowapi.Decision{Host: "host1", At: flowapi.AtBoth, By: flowapi.ByRule, Policy: "guard", Rule: "2", Verdict: flowapi.Denied}
	if len(all) != 2 || all[0].Count != 5 || all[1].Count != 1 || all[0].Decisions[0] != want || all[0].Src.Name != "app" || all[0].Dst.Port != 81 {
		t.Fatalf("%+v", all)
	}
	_, hits := h.Hits()
	if len(hits) != 1 || hits[0].Count != 6 || hits[0].Rule != "2" || hits[0].Verdict != flowapi.Denied || len(hits[0].Minutes) != 60 || hits[0].Minutes[59] != 6 {
		t.Errorf("hits %+v", hits)
	}
}

// TestDeniers: every kind of denial is named, at its end.
func TestDeniers(t *testing.T) {
	by := func(d ofnet.Denial) func(*drivers.Denied) { return func(x *drivers.Denied) { x.By = d } }
	for want, change := range map[string]func(*drivers.Denied){
		"denied source default ns/np tcp": by(ofnet.DeniedByPolicyOut), "denied destination default ns/np tcp": by(ofnet.DeniedByPolicyIn),
		"denied source anti-spoofing  tcp": by(ofnet.DeniedBySource), "denied source frame  tcp": by(ofnet.DeniedByFrame),
		"denied source control-plane  tcp": by(ofnet.DeniedByReach), "denied destination tunnel  tcp": by(ofnet.DeniedByTunnel),
		"rejected source service  tcp":     func(x *drivers.Denied) { x.By, x.Rejected = ofnet.DeniedByService, true },
		"denied source anti-spoofing  arp": func(x *drivers.Denied) { x.By, x.EthType, x.Proto = ofnet.DeniedBySource, 0x806, 0 },
		"denied source frame  ethertype 0x88cc": func(x *drivers.Denied) {
			x.By, x.EthType, x.Src, x.Dst = ofnet.DeniedByFrame, 0x88cc, netip.AddrPort{}, netip.AddrPort{}
		},
		"denied both rule ? 47": func(x *drivers.Denied) { x.Number, x.Proto = 5, 47 },
	} {
		h := newHost(t, 0)
		for _, id := range []string{"net.blue-app", "net.blue-web"} {
			h.Declare(drivers.EndpointPolicy{EndpointID: id, In: "s", Out: "s"})
		}
		h.deny(denied(81, change))
		r := h.one(flowapi.Filter{})
		d := r.Decisions[0]
		if got := fmt.Sprintf("%s %s %s %s %s", d.Verdict, d.At, d.By, d.Policy, r.Proto); got != want || r.Verdict != d.Verdict {
			t.Errorf("%s, want %s", got, want)
		}
		if raw, err := json.Marshal(r); err != nil || !json.Valid(raw) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestForged: a container that sends as others do is named itself, not they.
func TestForged(t *testing.T) {
	h := newHost(t, 0)
	h.deny(denied(81, func(d *drivers.Denied) { d.By, d.Src = ofnet.DeniedBySource, at("10.1.1.3:1") }))
	if r := h.one(flowapi.Filter{}); r.Src.Name != "app" || r.Src.Address.String() != "10.1.1.3" {
		t.Errorf("%+v", r.Src)
	}
	h = newHost(t, 0)
	h.deny(denied(81, func(d *drivers.Denied) { d.Endpoint = "" })) // from elsewhere, as if from app, which is here
	if r := h.one(flowapi.Filter{}); r.Src.Name != "" || r.Src.Endpoint != "" {
		t.Errorf("%+v", r.Src)
	}
}

// TestFlood: whatever a container sends, the log stays within its bounds, says how much it
// left out, and another container's denial is still there.
func TestFlood(t *testing.T) {
	h := newHost(t, 1<<20)
	const packets = 40000
	for i := range packets {
		h.deny(denied(1+i%65000, func(d *drivers.Denied) {
			d.By, d.Src = ofnet.DeniedBySource, netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(i), byte(i >> 8), byte(i >> 16), 9}), uint16(i))
		}))
		if i%100 == 0 {
			h.add(100 * time.Millisecond) // 1,000 packets per second
			h.sweep()
		}
	}
	h.deny(denied(81, func(d *drivers.Denied) { d.Endpoint, d.Src = "net.blue-web", at("10.1.1.1:5") }))
	all, gaps := h.events(flowapi.Filter{})
	left := uint64(0)
	for _, g := range gaps {
		left += g.Count
	}
	if uint64(len(all))+left != packets+1 || len(all) > (1<<20)/entryBytes+chunk || h.ring.bytes() > 2<<20 {
		t.Errorf("%d records in %d bytes and %d left out of %d packets", len(all), h.ring.bytes(), left, packets+1)
	}
	if len(h.joining) > mostJoining || all[len(all)-1].Src.Name != "web" || len(gaps) > mostGaps {
		t.Errorf("%d being joined, %d gaps, last %+v", len(h.joining), len(gaps), all[len(all)-1])
	}
}

// TestOddNames: names are told as they are, one line for each record.
func TestOddNames(t *testing.T) {
	h := newHost(t, 0)
	odd := "<script>\n%s\x1b[31m\u202e\"'"
	raw, err := json.Marshal(state.Endpoint{ID: "net.blue-app", NetID: "net.blue", EPCommonName: odd, ServiceName: odd, HomingHost: "host1", IPAddress: "10.1.1.2"})
	if err != nil {
		t.Fatal(err)
	}
	h.Apply(objdb.Batch{Events: []objdb.Event{{KV: objdb.KV{Key: state.EndpointRoot + "net.blue-app", Value: raw}}, {KV: objdb.KV{Key: state.EndpointRoot + "net.blue-x", Value: []byte("{")}}}})
	h.reads(conn(1, nil))
	r := h.one(flowapi.Filter{})
	line, err := json.Marshal(r)
	if err != nil || slices.Contains(line, '\n') || r.Src.Name != odd || r.Src.Group != odd {
		t.Errorf("%s, %v", line, err)
	}
}

// TestFollow: a reader gets what comes and what changes, and one that is too slow is told
// how much it missed.
func TestFollow(t *testing.T) {
	h := newHost(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan flowapi.Event)
	done := make(chan error, 1)
	go func() {
		done <- h.Stream(ctx, flowapi.Filter{Follow: true}, func(e *flowapi.Event) error {
			events <- *e
			return nil
		}, func() error { return nil })
	}()
	if e := <-events; e.Heartbeat == nil || !e.Heartbeat.Live {
		t.Fatalf("first %+v", e)
	}
	h.reads(conn(1, nil))
	begun := <-events
	h.reads()
	ended := <-events
	if begun.Record == nil || ended.Record == nil || begun.Record.ID != ended.Record.ID || !begun.Record.End.IsZero() || ended.Record.End.IsZero() {
		t.Errorf("begun %+v, ended %+v", begun.Record, ended.Record)
	}
	const many = mostPending + 500
	for i := range many {
		h.deny(denied(i, nil))
	}
	records, missed := 0, uint64(0)
	for records+int(missed) < many {
		switch e := <-events; {
		case e.Record != nil:
			records++
		case e.Gap != nil:
			missed += e.Gap.Count
		}
	}
	if records+int(missed) != many || missed == 0 {
		t.Errorf("%d records and %d missed of %d", records, missed, many)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(h.readers) != 0 {
		t.Errorf("%d readers are left", len(h.readers))
	}
}

// TestTooManyReaders: readers are bounded.
func TestTooManyReaders(t *testing.T) {
	h := newHost(t, 0)
	for range mostReaders {
		if _, err := h.subscribe(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Stream(t.Context(), flowapi.Filter{Follow: true}, nil, nil); err == nil {
		t.Error("one more follows")
	}
}

// TestAge: records leave after an hour, open ones stay.
func TestAge(t *testing.T) {
	h := newHost(t, 0)
	h.deny(denied(81, nil))
	h.add(30 * time.Minute)
	h.reads(conn(1, nil))
	h.add(31 * time.Minute)
	h.sweep()
	if r := h.one(flowapi.Filter{}); r.Verdict != flowapi.Allowed {
		t.Errorf("%+v", r)
	}
	h.add(2 * time.Hour)
	h.sweep()
	h.one(flowapi.Filter{})
	h.reads()
	h.add(61 * time.Minute)
	h.sweep()
	if all, gaps := h.events(flowapi.Filter{}); len(all)+len(gaps) != 0 {
		t.Errorf("%+v %+v", all, gaps)
	}
}

// TestRun: the log reads the switch, and tells of what that withheld.
func TestRun(t *testing.T) {
	h := newHost(t, 0)
	h.driver.Track(map[string]uint64{"a": 10}, conn(1, nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	events := make(chan flowapi.Event, 100)
	go func() { done <- h.Run(ctx, h.driver) }()
	go func() {
		_ = h.Stream(ctx, flowapi.Filter{Follow: true}, func(e *flowapi.Event) error { events <- *e; return nil }, func() error { return nil })
		close(events)
	}()
	h.Denied(denied(81, nil))
	seen := map[flowapi.Verdict]bool{}
	for e := range events {
		if e.Record != nil {
			seen[e.Record.Verdict] = true
		}
		if len(seen) == 2 {
			cancel()
		}
	}
	if err := <-done; !seen[flowapi.Allowed] || !seen[flowapi.Denied] || err == nil {
		t.Errorf("%v, %v", seen, err)
	}
}

// TestIncrease: a meter that goes, or comes back, hides nothing of what the others withhold.
func TestIncrease(t *testing.T) {
	for name, c := range map[string]struct {
		last, counts map[string]uint64
		expected     uint64
	}{
		"nothing":             {map[string]uint64{"a": 5}, map[string]uint64{"a": 5}, 0},
		"more":                {map[string]uint64{"a": 5, "b": 1}, map[string]uint64{"a": 7, "b": 2}, 3},
		"a meter has gone":    {map[string]uint64{"a": 5, "b": 100}, map[string]uint64{"a": 7}, 2},
		"a meter has come":    {map[string]uint64{"a": 5}, map[string]uint64{"a": 5, "b": 4}, 4},
		"a meter begins anew": {map[string]uint64{"a": 5}, map[string]uint64{"a": 3}, 3},
	} {
		if n := increase(c.last, c.counts); n != c.expected {
			t.Errorf("%s: %d, expected %d", name, n, c.expected)
		}
	}
}

// TestWithheld: what was withheld before the first reading is of the agent before, what is
// withheld after it is told, however late that reading was.
func TestWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		source := &meters{err: errs.New(errs.Unavailable, "not yet")}
		go h.countWithheld(ctx, source)
		missed := func() uint64 {
			synctest.Wait()
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.stats.missed
		}
		time.Sleep(time.Second)
		source.set(map[string]uint64{"a": 7}, nil)
		time.Sleep(withheldAgain)
		synctest.Wait()
		source.set(map[string]uint64{"a": 10}, nil)
		time.Sleep(withheldEvery)
		if n := missed(); n != 3 {
			t.Errorf("%d packets are told as missed, expected 3", n)
		}
		cancel()
		synctest.Wait()
	})
}

// meters are those of a switch without connections.
type meters struct {
	mu     sync.Mutex
	counts map[string]uint64
	err    error
}

func (m *meters) set(counts map[string]uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts, m.err = counts, err
}

func (*meters) Connections(context.Context, func(*drivers.Connection)) error { return nil }

func (m *meters) Withheld(context.Context) (map[string]uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts, m.err
}
