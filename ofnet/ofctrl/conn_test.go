package ofctrl_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet/ofctrl"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/utils/errs"
)

// connect starts a switch with bridge br0 and connects to it.
func connect(t *testing.T, cfg ofctrl.Config) (*ovstest.Switch, *ofctrl.Conn) {
	t.Helper()
	sw := ovstest.Start(t)
	sw.AddBridge("br0", "other_config:datapath-id=00000000000000ab")
	cfg.Target = sw.Target("br0")
	return sw, dial(t, cfg)
}

func dial(t *testing.T, cfg ofctrl.Config) *ofctrl.Conn {
	t.Helper()
	c, err := ofctrl.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// flowsOf dumps the flows of a switch by key.
func flowsOf(t *testing.T, c *ofctrl.Conn) map[of.FlowKey]of.Flow {
	t.Helper()
	have := map[of.FlowKey]of.Flow{}
	err := c.DumpFlows(t.Context(), 0, 0, func(s of.FlowStats) error {
		have[s.Key()] = s.Flow
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return have
}

func parseFlow(t *testing.T, s string) of.Flow {
	t.Helper()
	f, err := of.ParseFlow(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func adds(t *testing.T, lines ...string) []of.Message {
	t.Helper()
	var mods []of.Message
	for _, l := range lines {
		mods = append(mods, of.AddFlow(parseFlow(t, l)))
	}
	return mods
}

func TestDial(t *testing.T) {
	sw, c := connect(t, ofctrl.Config{})
	if got := c.DatapathID(); got != 0xab {
		t.Errorf("datapath id %#x, want 0xab", got)
	}
	sw.AddDummyPort("br0", "p7", "7")
	ports, err := c.DumpPorts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint32{}
	for _, p := range ports {
		got[p.Name] = p.Number
	}
	if d := cmp.Diff(map[string]uint32{"br0": of.PortLocal, "p7": 7}, got); d != "" {
		t.Errorf("ports (-want +got):\n%s", d)
	}
	d, err := c.Desc(t.Context())
	if err != nil || d.Hardware != "Open vSwitch" {
		t.Errorf("description %+v, %v", d, err)
	}
}

func TestDialRefuses(t *testing.T) {
	for target, want := range map[string]errs.Kind{
		"nonsense":                 errs.Invalid,
		"udp:127.0.0.1:6633":       errs.Invalid,
		"unix:":                    errs.Invalid,
		"unix:/nonexistent/socket": errs.Unavailable,
	} {
		c, err := ofctrl.Dial(t.Context(), ofctrl.Config{Target: target})
		if err == nil {
			c.Close()
		}
		if !errs.Is(err, want) {
			t.Errorf("%s: error %v of kind %v, want %v", target, err, errs.KindOf(err), want)
		}
	}
}

// TestFlowsComeBackEqual installs a flow of every kind and compares what the switch reports
// with what was sent: as values, and as text with that of ovs-ofctl.
func TestFlowsComeBackEqual(t *testing.T) {
	sw, c := connect(t, ofctrl.Config{})
	drop := of.NewActions()
	err := c.Send(t.Context(), []of.Message{
		of.AddGroup(of.Group{ID: 5, Buckets: of.NewBuckets().Add(drop)}),
		of.AddGroup(of.Group{ID: 9, Buckets: of.NewBuckets().Add(drop)}),
		of.AddMeter(of.Meter{ID: 3, Flags: of.MeterKbps, Bands: of.NewBands().Drop(1000, 0)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[of.FlowKey]of.Flow{}
	for _, line := range goldenFlows(t) {
		f := parseFlow(t, line)
		if strings.Contains(line, "check_overlap") {
			f.Flags &^= of.FlowCheckOverlap // the file's flows do overlap
		}
		if err := c.Bundle(t.Context(), []of.Message{of.AddFlow(f)}); err != nil {
			t.Error(err)
			continue
		}
		want[f.Key()] = f
	}
	have := flowsOf(t, c)
	for k, f := range want {
		if have[k] != f {
			t.Errorf("flow came back changed:\n got %v\nwant %v\n got %x\nwant %x", have[k], f, have[k], f)
		}
	}
	var ours []string
	for k, f := range have {
		if _, ok := want[k]; !ok {
			t.Errorf("unexpected flow %v", f)
		}
		ours = append(ours, f.String())
	}
	theirs := sw.DumpFlows("br0")
	slices.Sort(ours)
	slices.Sort(theirs)
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("text (-ovs-ofctl +ours):\n%s", d)
	}
}

func TestGroupsAndMetersComeBackEqual(t *testing.T) {
	sw, c := connect(t, ofctrl.Config{})
	out := of.NewActions().Output(1)
	groups := []of.Group{
		{ID: 1, Type: of.GroupTypeAll, Buckets: of.NewBuckets().Add(out).Add(of.NewActions().SetTunID(5).Output(2))},
		{ID: 2, Type: of.GroupTypeSelect, Buckets: of.NewBuckets().AddWeighted(100, out).AddWeighted(1, out)},
		{ID: 3, Type: of.GroupTypeIndirect, Buckets: of.NewBuckets().Add(out)},
		{ID: 4, Type: of.GroupTypeFastFailover, Buckets: of.NewBuckets().AddWatched(1, out)},
		{ID: 5, Type: of.GroupTypeAll},
		{ID: 6, Type: of.GroupTypeSelect, Buckets: of.NewBuckets().AddWeighted(1,
			of.NewActions().CT(of.CT{Commit: true, Recirc: true, Table: 4}))},
	}
	meters := []of.Meter{
		{ID: 1, Flags: of.MeterKbps, Bands: of.NewBands().Drop(1000, 0)},
		{ID: 2, Flags: of.MeterPktps | of.MeterBurst | of.MeterCollect, Bands: of.NewBands().Drop(10, 4)},
	}
	var mods []of.Message
	for _, g := range groups {
		mods = append(mods, of.AddGroup(g))
	}
	for _, m := range meters {
		mods = append(mods, of.AddMeter(m))
	}
	if err := c.Send(t.Context(), mods); err != nil {
		t.Fatal(err)
	}
	gotGroups, err := c.DumpGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(gotGroups, func(a, b of.Group) int { return int(a.ID) - int(b.ID) })
	if d := cmp.Diff(groups, gotGroups); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
	gotMeters, err := c.DumpMeters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(gotMeters, func(a, b of.Meter) int { return int(a.ID) - int(b.ID) })
	if d := cmp.Diff(meters, gotMeters); d != "" {
		t.Errorf("meters (-want +got):\n%s", d)
	}
	dump := sw.Ofctl("dump-groups", "br0")
	for _, g := range groups {
		if !strings.Contains(dump, " "+g.String()+"\n") {
			t.Errorf("group %v is not in\n%s", g, dump)
		}
	}
}

func TestBundleIsAllOrNothing(t *testing.T) {
	_, c := connect(t, ofctrl.Config{})
	group := of.AddGroup(of.Group{ID: 7, Buckets: of.NewBuckets().Add(of.NewActions().Output(1))})
	good := adds(t, "table=1,priority=5,ip,actions=output:1", "table=2,arp,actions=group:7")

	tests := []struct {
		name string
		bad  of.Message
		want string // in the error
	}{
		{
			// Rejected when it is added to the bundle.
			"prerequisite", of.AddFlow(of.Flow{Priority: 9, Match: of.NewMatch().TCPDst(80)}),
			"flow add priority=9,tcp_dst=80 actions=drop: OFPBMC_BAD_PREREQ",
		},
		{
			// Rejected when the bundle is committed.
			"unknown group", of.AddFlow(of.Flow{Priority: 8, Instructions: of.NewInstructions().Apply(of.NewActions().Group(99))}),
			"flow add priority=8 actions=group:99: OFPBAC_BAD_OUT_GROUP",
		},
		{"group twice", group, "group add group_id=7,type=all,bucket=actions=output:1: OFPGMFC_GROUP_EXISTS"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mods := append([]of.Message{group}, good...)
			err := c.Bundle(t.Context(), append(mods, tt.bad))
			var refused *ofctrl.MessageError
			if !errs.Is(err, errs.Invalid) || !errors.As(err, &refused) {
				t.Fatalf("error %v", err)
			}
			if refused.Index != 3 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("message %d: %v, want %q of message 3", refused.Index, err, tt.want)
			}
			if have := flowsOf(t, c); len(have) != 0 {
				t.Errorf("flows of a refused bundle: %v", have)
			}
			if groups, err := c.DumpGroups(t.Context()); err != nil || len(groups) != 0 {
				t.Errorf("groups of a refused bundle: %v, %v", groups, err)
			}
		})
	}
	if err := c.Bundle(t.Context(), append([]of.Message{group}, good...)); err != nil {
		t.Fatal(err)
	}
	if have := flowsOf(t, c); len(have) != 2 {
		t.Errorf("flows after a good bundle: %v", have)
	}
}

func TestSendAppliesWhatIsAccepted(t *testing.T) {
	_, c := connect(t, ofctrl.Config{})
	mods := adds(t, "priority=1,actions=drop", "priority=2,actions=drop")
	bad := of.AddFlow(of.Flow{Priority: 9, Match: of.NewMatch().TCPDst(80)})
	err := c.Send(t.Context(), []of.Message{mods[0], bad, mods[1]})
	var refused *ofctrl.MessageError
	if !errors.As(err, &refused) || refused.Index != 1 || refused.Message != of.Message(bad) {
		t.Errorf("error %v, want that of message 1", err)
	}
	if have := flowsOf(t, c); len(have) != 2 {
		t.Errorf("flows: %v", have)
	}
}

// TestMistakesAreRefused sends what the builders make of mistakes: the switch must accept
// none of it.
func TestMistakesAreRefused(t *testing.T) {
	_, c := connect(t, ofctrl.Config{})
	v6 := netip.MustParsePrefix("2001:db8::/32")
	match := func(m of.Match) of.Flow { return of.Flow{Match: m} }
	apply := func(a of.Actions) of.Flow { return of.Flow{Instructions: of.NewInstructions().Apply(a)} }
	a := of.NewActions()
	for name, f := range map[string]of.Flow{
		"IPv6 prefix for an IPv4 field": match(of.NewMatch().IP().IPv4Dst(v6)),
		"register 16":                   match(of.NewMatch().Reg(16, 1)),
		"no address":                    match(of.NewMatch().TunSrc(netip.Addr{})),
		"set register 16":               apply(a.SetReg(16, 1)),
		"move of unequal sizes":         apply(a.Move(of.FieldReg(1).All(), of.FieldMetadata.All())),
		"bits that do not exist":        apply(a.OutputReg(of.FieldReg(1).Range(0, 32))),
		"load into nothing":             apply(a.Load(of.Subfield{}, 1)),
		"NAT range of two families": apply(a.CT(of.CT{Commit: true, NAT: of.NAT{
			Kind: of.NATSource, Min: netip.MustParseAddr("10.0.0.1"), Max: v6.Addr(),
		}})),
		"multipath without links": apply(a.Multipath(of.Multipath{Dst: of.FieldReg(1).All()})),
	} {
		if err := c.Send(t.Context(), []of.Message{of.AddFlow(f)}); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v gives %v", name, f, err)
		}
	}
	if have := flowsOf(t, c); len(have) != 0 {
		t.Errorf("flows: %v", have)
	}
}

func TestDeleteByCookie(t *testing.T) {
	_, c := connect(t, ofctrl.Config{})
	if err := c.Bundle(t.Context(), adds(t,
		"cookie=0x100000001,table=1,actions=drop", "cookie=0x200000001,table=2,actions=drop",
		"cookie=0x200000002,table=3,ip,actions=drop", "cookie=0x200000003,table=3,actions=drop")); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := c.DumpFlows(t.Context(), 0x200000000, 0xffff00000000, func(of.FlowStats) error { n++; return nil })
	if err != nil || n != 3 {
		t.Errorf("%d flows with the cookie, %v", n, err)
	}
	err = c.Bundle(t.Context(), []of.Message{
		of.DeleteFlow(of.FlowKey{Table: 3, Priority: 32768}), of.DeleteFlows(of.TableAll, 0x100000000, 0xffff00000000),
	})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, f := range flowsOf(t, c) {
		left = append(left, f.String())
	}
	slices.Sort(left)
	want := []string{"cookie=0x200000001, table=2, actions=drop", "cookie=0x200000002, table=3, ip actions=drop"}
	if d := cmp.Diff(want, left); d != "" {
		t.Errorf("flows left (-want +got):\n%s", d)
	}
	sum, err := c.Aggregate(t.Context(), nil)
	if err != nil || sum.Flows != 2 {
		t.Errorf("aggregate %+v, %v", sum, err)
	}
}

func TestAsynchronousMessages(t *testing.T) {
	packets := make(chan *of.PacketIn, 10)
	ports := make(chan *of.PortStatus, 10)
	removed := make(chan *of.FlowRemoved, 10)
	sw, c := connect(t, ofctrl.Config{
		PacketIn:    func(p *of.PacketIn) { packets <- p },
		PortStatus:  func(p *of.PortStatus) { ports <- p },
		FlowRemoved: func(p *of.FlowRemoved) { removed <- p },
		Userdata:    true,
	})
	sw.AddDummyPort("br0", "p3", "3")
	if p := <-ports; p.Port.Name != "p3" || p.Port.Number != 3 || p.Reason != of.PortAdded {
		t.Errorf("port status %+v", p)
	}
	flow := of.Flow{
		Table: 4, Priority: 7, Cookie: 0x77, Flags: of.FlowSendRemoved,
		Instructions: of.NewInstructions().Apply(of.NewActions().SetReg(3, 9).
			Controller(of.Controller{Userdata: []byte("why")})),
	}
	if err := c.Bundle(t.Context(), []of.Message{of.AddFlow(flow)}); err != nil {
		t.Fatal(err)
	}
	frame := slices.Concat(make([]byte, 12), []byte{0x88, 0xcc}, make([]byte, 50))
	err := c.PacketOut(&of.PacketOut{InPort: 3, Actions: of.NewActions().Resubmit(4), Data: frame})
	if err != nil {
		t.Fatal(err)
	}
	p := <-packets
	reg, _ := p.Match.Get(of.FieldReg(3))
	if p.Table != 4 || p.Cookie != 0x77 || p.InPort() != 3 || reg.Uint64() != 9 ||
		string(p.Userdata) != "why" || !slices.Equal(p.Data, frame) || p.Reason != of.ReasonAction {
		t.Errorf("packet in %+v", p)
	}
	if err := c.Bundle(t.Context(), []of.Message{of.DeleteFlow(flow.Key())}); err != nil {
		t.Fatal(err)
	}
	if r := <-removed; r.Cookie != 0x77 || r.Table != 4 || r.Reason != of.RemovedDelete {
		t.Errorf("flow removed %+v", r)
	}
}

func TestConnectionEndsWithTheSwitch(t *testing.T) {
	sw, c := connect(t, ofctrl.Config{})
	sw.Restart(syscall.SIGKILL)
	<-c.Done()
	if !errs.Is(c.Err(), errs.Unavailable) {
		t.Errorf("error %v", c.Err())
	}
	if err := c.Bundle(t.Context(), adds(t, "actions=drop")); !errs.Is(err, errs.Unavailable) {
		t.Errorf("bundle on a lost connection: %v", err)
	}
	c = dial(t, ofctrl.Config{Target: sw.Target("br0")})
	if err := c.Barrier(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEchoKeepsAQuietConnection(t *testing.T) {
	_, c := connect(t, ofctrl.Config{EchoInterval: 2 * time.Millisecond, EchoTimeout: time.Minute})
	before := c.Stats().Received
	for c.Stats().Received < before+5 {
		select {
		case <-c.Done():
			t.Fatal(c.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func TestClose(t *testing.T) {
	_, c := connect(t, ofctrl.Config{})
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if !errors.Is(c.Err(), ofctrl.ErrClosed) {
		t.Errorf("error %v", c.Err())
	}
	if err := c.Send(context.Background(), adds(t, "actions=drop")); !errors.Is(err, ofctrl.ErrClosed) {
		t.Errorf("send after close: %v", err)
	}
}
