package ofnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	of "github.com/contiv/netplugin/libopenflow"
)

// fakeBridge is a bridge in memory. It rejects flows of table 99, as a real one would
// reject a malformed flow, and flows that refer to a missing group or meter. Removing a
// group or meter removes its flows. A bundle applies as a whole or not at all.
type fakeBridge struct {
	mu     sync.Mutex
	tables fakeTables
	mods   int
	order  []string // what was done, as verb and kind
	gone   chan struct{}
	onAdd  func(of.Flow, fakeTables) // if set, called before a flow is added
}

type fakeTables struct {
	flows  map[of.FlowKey]of.Flow
	groups map[uint32]of.Group
	meters map[uint32]of.Meter
}

func newFakeBridge() *fakeBridge {
	return &fakeBridge{tables: fakeTables{map[of.FlowKey]of.Flow{}, map[uint32]of.Group{}, map[uint32]of.Meter{}}}
}

// uses reports whether a flow's instructions refer to what ("group:3", "meter:3").
func uses(f of.Flow, what string) bool {
	return slices.Contains(strings.FieldsFunc(f.Instructions.String(), func(r rune) bool { return r == ',' || r == ' ' }), what)
}

func (tb fakeTables) take(m of.Message) (string, error) {
	switch m := m.(type) {
	case *of.FlowMod:
		if m.Command == of.FlowDeleteStrict {
			delete(tb.flows, m.Flow.Key())
			return "remove flow", nil
		}
		if m.Flow.Table == 99 {
			return "", errors.New("bad table")
		}
		for id := range uint32(10) {
			if _, ok := tb.groups[id]; uses(m.Flow, fmt.Sprint("group:", id)) && !ok {
				return "", errors.New("bad group")
			}
			if _, ok := tb.meters[id]; uses(m.Flow, fmt.Sprint("meter:", id)) && !ok {
				return "", errors.New("bad meter")
			}
		}
		tb.flows[m.Flow.Key()] = m.Flow
		return "add flow", nil
	case *of.GroupMod:
		verb, err := change3(tb.groups, m.Group.ID, m.Group, int(m.Command))
		if m.Command == of.GroupDelete {
			tb.dropUsers(fmt.Sprint("group:", m.Group.ID))
		}
		return verb + " group", err
	case *of.MeterMod:
		verb, err := change3(tb.meters, m.Meter.ID, m.Meter, int(m.Command))
		if m.Command == of.MeterDelete {
			tb.dropUsers(fmt.Sprint("meter:", m.Meter.ID))
		}
		return verb + " meter", err
	}
	return "", fmt.Errorf("message of type %s", m.Type())
}

func (tb fakeTables) dropUsers(what string) {
	for key, f := range tb.flows {
		if uses(f, what) {
			delete(tb.flows, key)
		}
	}
}

// change3 adds, modifies or deletes; groups and meters use the same command numbers.
func change3[V any](rows map[uint32]V, id uint32, v V, command int) (string, error) {
	_, exists := rows[id]
	verb := [...]string{"add", "modify", "remove"}[command]
	switch {
	case exists != (command != 0):
		return "", fmt.Errorf("%s %d: exists %t", verb, id, exists)
	case command == 2:
		delete(rows, id)
	default:
		rows[id] = v
	}
	return verb, nil
}

func (b *fakeBridge) dial(context.Context, string) (Channel, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = make(chan struct{})
	return &fakeChannel{b, b.gone}, nil
}

// cut breaks the connection.
func (b *fakeBridge) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.gone)
}

func (b *fakeBridge) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for _, f := range b.tables.flows {
		f.Cookie &= cookieIdentity
		lines = append(lines, f.String())
	}
	for _, g := range b.tables.groups {
		lines = append(lines, g.String())
	}
	for _, m := range b.tables.meters {
		lines = append(lines, m.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (b *fakeBridge) sent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mods
}

type fakeChannel struct {
	b    *fakeBridge
	gone chan struct{}
}

func (c *fakeChannel) Dump(_ context.Context, yield func(of.Flow)) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	for _, f := range c.b.tables.flows {
		yield(f)
	}
	return nil
}

func (c *fakeChannel) DumpGroups(context.Context) ([]of.Group, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return slices.Collect(maps.Values(c.b.tables.groups)), nil
}

func (c *fakeChannel) Stats(_ context.Context, cookie, mask uint64, yield func(of.FlowStats)) error {
	return c.Dump(context.Background(), func(f of.Flow) {
		if f.Cookie&mask == cookie&mask {
			yield(of.FlowStats{Flow: f})
		}
	})
}

func (c *fakeChannel) DumpMeters(context.Context) ([]of.Meter, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return slices.Collect(maps.Values(c.b.tables.meters)), nil
}

func (c *fakeChannel) Apply(_ context.Context, mods []of.Message) error {
	for _, m := range mods {
		if m.Type() == of.TypeMeterMod {
			return &Refused{errors.New("a meter cannot be in a bundle")}
		}
	}
	return c.carry(mods)
}

func (c *fakeChannel) Send(_ context.Context, mods []of.Message) error { return c.carry(mods) }

func (c *fakeChannel) carry(mods []of.Message) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	select {
	case <-c.gone:
		return errors.New("channel closed")
	default:
	}
	trial := fakeTables{maps.Clone(c.b.tables.flows), maps.Clone(c.b.tables.groups), maps.Clone(c.b.tables.meters)}
	var did []string
	for _, m := range mods {
		if add, ok := m.(*of.FlowMod); ok && add.Command == of.FlowAdd && c.b.onAdd != nil {
			c.b.onAdd(add.Flow, trial)
		}
		what, err := trial.take(m)
		if err != nil {
			return &Refused{err}
		}
		did = append(did, what)
	}
	c.b.tables = trial
	c.b.mods += len(mods)
	c.b.order = append(c.b.order, did...)
	return nil
}

func (c *fakeChannel) Done() <-chan struct{} { return c.gone }
func (c *fakeChannel) Close() error          { return nil }

func quiet() logrus.FieldLogger {
	l := logrus.New()
	l.SetLevel(logrus.PanicLevel)
	return l
}

// runSwitch runs a Switch on a bridge until the test ends.
func runSwitch(t *testing.T, b *fakeBridge) *Switch {
	t.Helper()
	s := NewSwitch(SwitchConfig{Name: "br", Log: quiet(), Dial: b.dial})
	startSwitch(t, s)
	return s
}

func startSwitch(t *testing.T, s *Switch) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// settle waits until nothing is pending.
func settle(t *testing.T, s *Switch) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for s.Ready() != nil {
		if time.Now().After(deadline) {
			t.Fatal(s.Ready())
		}
		time.Sleep(time.Millisecond)
	}
}

func flow(table uint8, priority uint16, port uint32) of.Flow {
	return of.Flow{Table: table, Priority: priority, Match: of.NewMatch().InPort(port), Instructions: goTo(table + 1)}
}

func flows(list ...of.Flow) Program { return Program{Flows: list} }

func TestSwitchSendsOnlyTheDifference(t *testing.T) {
	b := newFakeBridge()
	stale := flow(5, 1, 1)
	b.tables.flows[stale.Key()] = stale
	s := runSwitch(t, b)
	s.Set("a", flows(flow(0, 1, 1), flow(0, 1, 2)))
	s.InitialSyncDone()
	settle(t, s)
	if got := b.sent(); got != 3 {
		t.Errorf("%d flow-mods, expected 2 additions and the removal of the stale flow", got)
	}
	b.cut()
	s.Set("b", Program{})
	settle(t, s)
	if got := b.sent(); got != 3 {
		t.Errorf("%d flow-mods after a reconnect that changes nothing, expected no further one", got-3)
	}
	s.Set("a", flows(flow(0, 1, 2), flow(0, 1, 3)))
	settle(t, s)
	if got := b.sent(); got != 5 {
		t.Errorf("%d flow-mods for one flow replaced by another, expected 2", got-3)
	}
}

func TestSwitchKeepsForeignFlowsUntilInitialSyncDone(t *testing.T) {
	b := newFakeBridge()
	old := flow(3, 1, 9)
	b.tables.flows[old.Key()] = old
	s := runSwitch(t, b)
	s.Set("a", flows(flow(0, 1, 1)))
	if err := s.Settled(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.text(), "table=3") {
		t.Fatal("a flow that may still be declared has been removed")
	}
	s.InitialSyncDone()
	settle(t, s)
	if strings.Contains(b.text(), "table=3") {
		t.Fatal("a stale flow is still there")
	}
}

func TestSwitchIgnoresTheRound(t *testing.T) {
	b := newFakeBridge()
	f := flow(0, 1, 1)
	f.Cookie = cookie(1, featureARP, "x")
	b.tables.flows[f.Key()] = f
	s := runSwitch(t, b)
	f.Cookie = cookie(2, featureARP, "x")
	s.Set("a", flows(f))
	s.InitialSyncDone()
	settle(t, s)
	if got := b.sent(); got != 0 {
		t.Errorf("%d flow-mods for a flow that differs in its round only", got)
	}
}

func TestRefusedFlowDoesNotBlockOthers(t *testing.T) {
	b := newFakeBridge()
	s := runSwitch(t, b)
	for i := range uint32(20) {
		s.Set(fmt.Sprint("good", i), flows(flow(0, 1, i+1)))
	}
	s.Set("bad", flows(flow(99, 1, 1)))
	for i := range 20 {
		if err := s.Settled(t.Context(), fmt.Sprint("good", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settled(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "bad table") {
		t.Errorf("settled with %v, expected the bridge's refusal", err)
	}
	s.Remove("bad")
	s.InitialSyncDone()
	settle(t, s)
}

// TestCaughtUp: what was set before is in the bridge then, but for what it rejects, also when
// the bridge has to be filled again.
func TestCaughtUp(t *testing.T) {
	b := newFakeBridge()
	s := runSwitch(t, b)
	for round := range 50 {
		if round%10 == 9 {
			b.mu.Lock()
			clear(b.tables.flows)
			b.mu.Unlock()
			b.cut()
		}
		for i := range uint32(100) {
			s.Set(fmt.Sprint(i), flows(flow(0, uint16(round+1), i+1)))
		}
		s.Set("bad", flows(flow(99, 1, 1)))
		if err := s.CaughtUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		for i := range uint32(100) {
			if _, ok := b.tables.flows[flow(0, uint16(round+1), i+1).Key()]; !ok {
				t.Errorf("round %d: flow %d is missing", round, i)
			}
		}
		b.mu.Unlock()
	}
}

func TestSharedKeyGoesToTheNextOwner(t *testing.T) {
	b := newFakeBridge()
	s := runSwitch(t, b)
	one, two := flow(0, 1, 1), flow(0, 1, 1)
	two.Instructions = goTo(7)
	s.Set("one", flows(one))
	s.Set("two", flows(two))
	s.InitialSyncDone()
	settle(t, s)
	if !strings.Contains(b.text(), "goto_table:1") {
		t.Fatalf("expected the first owner's flow, got %s", b.text())
	}
	s.Remove("one")
	settle(t, s)
	if !strings.Contains(b.text(), "goto_table:7") {
		t.Fatalf("expected the second owner's flow, got %s", b.text())
	}
	s.Remove("two")
	settle(t, s)
	if b.text() != "" {
		t.Fatalf("expected no flow, got %s", b.text())
	}
}

// Whatever the order of events and however often the connection breaks, the bridge ends
// with the flows of the final objects.
func TestAnyOrderEndsInTheSameFlows(t *testing.T) {
	p, err := NewPipeline(Settings{Encap: VXLAN, Routing: true, TunnelPort: testTunnelPort})
	if err != nil {
		t.Fatal(err)
	}
	type event func(*Switch)
	final := []event{func(s *Switch) { s.Set("fixed", p.Program(Base{})) }}
	for _, n := range []Network{vxNet1, vxNet2, vxOther} {
		final = append(final, func(s *Switch) { s.Set(n.ID, p.Program(n)) })
	}
	for _, e := range []Endpoint{local1, local1b, local2, remote1, remote2, red, redFar} {
		final = append(final, func(s *Switch) { s.Set(e.ID, p.Program(e)) })
	}
	var want string
	for round := range 30 {
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		b := newFakeBridge()
		s := runSwitch(t, b)
		noise := []event{
			func(s *Switch) { s.Set("tmp", p.Program(remote1)) }, func(s *Switch) { s.Set("tmp", p.Program(redFar)) },
			func(s *Switch) { s.Remove(local1.ID) }, func(s *Switch) { s.Set(local2.ID, p.Program(remote2)) },
		}
		for _, e := range noise {
			e(s)
		}
		events := slices.Clone(final)
		rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for i, e := range events {
			e(s)
			if i == len(events)/2 {
				s.InitialSyncDone()
				settle(t, s)
				b.cut()
			}
		}
		s.Remove("tmp")
		settle(t, s)
		if want == "" {
			want = b.text()
		}
		if diff := cmp.Diff(want, b.text()); diff != "" {
			t.Fatalf("round %d (-first +now):\n%s", round, diff)
		}
	}
}
