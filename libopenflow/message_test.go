package libopenflow

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleMessages has one message of every type, with something in every field.
func sampleMessages() []Message {
	match := NewMatch().InPort(3).Dst(netip.MustParsePrefix("10.0.0.0/8")).Reg(1, 7)
	acts := NewActions().SetReg(1, 2).Output(4)
	flow := Flow{
		Table: 1, Priority: 2, Cookie: 3, IdleTimeout: 4, HardTimeout: 5, Flags: FlowSendRemoved,
		Match: match, Instructions: NewInstructions().Apply(acts).Goto(3),
	}
	group := Group{ID: 5, Type: GroupTypeSelect, Buckets: NewBuckets().AddWeighted(3, acts)}
	meter := Meter{ID: 6, Flags: MeterKbps | MeterBurst, Bands: NewBands().Drop(7, 8)}
	port := Port{1, MAC{2}, "p1", 3, 4, 5, 6, 7, 8, 9, 10}
	count := Counter{5, 6}
	reply := func(k MultipartType, b MultipartBody) Message {
		return &MultipartReply{Kind: k, More: true, Body: b}
	}
	return []Message{
		&Hello{Version: Version, Bitmap: 1 << 4},
		&Hello{Version: Version, Bitmap: 1<<33 | 1<<4},
		&Error{ErrType: 4, Code: 9, Data: []byte("message")},
		&Error{ErrType: errExperimenter, Code: 2300, Experimenter: onfExperimenter, Data: []byte{1}},
		&EchoRequest{Data: []byte("ping")},
		&EchoReply{},
		&Experimenter{ID: 1, ExpType: 2, Data: []byte{3}},
		&FeaturesRequest{},
		&FeaturesReply{1, 2, 3, 4, 5},
		&GetConfigRequest{},
		&GetConfigReply{1, 2},
		&SetConfig{1, 2},
		&PacketIn{Reason: ReasonTTL, Table: 1, Cookie: 2, TotalLen: 3, Buffer: 4, Match: match, Data: []byte{5}},
		&FlowRemoved{RemovedHardTimeout, 1, 2, 3, 4*time.Second + 5, 6, 7, 8, 9, match},
		&PortStatus{PortModified, port},
		&PacketOut{InPort: PortAny, Buffer: NoBuffer, Actions: acts, Data: []byte{1, 2}},
		AddFlow(flow),
		ModifyFlow(flow),
		DeleteFlow(flow.Key()),
		DeleteFlows(TableAll, 1, 2),
		AddGroup(group),
		ModifyGroup(group),
		DeleteGroup(GroupAll),
		AddMeter(meter),
		ModifyMeter(meter),
		DeleteMeter(MeterAll),
		&MultipartRequest{Kind: MultipartDesc},
		&MultipartRequest{Kind: MultipartFlow, Flows: AllFlows(1, 2)},
		&MultipartRequest{Kind: MultipartAggregate, Flows: &FlowRequest{1, 2, 3, 4, 5, match}},
		&MultipartRequest{Kind: MultipartGroupStats, ID: AllIDs},
		&MultipartRequest{Kind: MultipartMeterConfig, ID: 7},
		&MultipartRequest{Kind: 99, Body: []byte{1}},
		reply(MultipartDesc, &Desc{"a", "b", "c", "d", "e"}),
		reply(MultipartFlow, FlowStatsList{{flow, 6*time.Second + 7, 8, 9}, {Flow: flow}}),
		reply(MultipartAggregate, &AggregateStats{1, 2, 3}),
		reply(MultipartTable, TableStatsList{{1, 2, 3, 4}}),
		reply(MultipartPortStats, PortStatsList{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}}),
		reply(MultipartGroupStats, GroupStatsList{{1, 2, count, 4, []Counter{count, count}}}),
		reply(MultipartGroupDesc, GroupDescList{group, group}),
		reply(MultipartMeterStats, MeterStatsList{{1, 2, count, 4, []Counter{count}}}),
		reply(MultipartMeterConfig, MeterConfigList{meter}),
		reply(MultipartPortDesc, PortDescList{port, port}),
		reply(99, RawBody{1, 2}),
		&BarrierRequest{},
		&BarrierReply{},
		&RoleRequest{RolePrimary, 9},
		&RoleReply{RoleStandby, 9},
		&SetAsync{[2]uint32{1, 2}, [2]uint32{3, 4}, [2]uint32{5, 6}},
		&SetPacketInFormat{PacketInFormat2},
		&SetControllerID{7},
		&Resume{Paused: []byte{0, 8, 0, 4}},
		&FlushCTZone{8},
		&FlushCT{Proto: 17, AnyZone: true, Reply: CTTuple{Dst: netip.MustParseAddr("2001:db8::1"), SrcPort: 3}},
		&BundleControl{1, BundleCommitReply, BundleAtomic},
		&BundleAdd{1, BundleOrdered, AddGroup(group)},
		&Raw{MsgType: 77, Body: []byte("what")},
	}
}

func TestEveryMessageSurvives(t *testing.T) {
	for _, m := range sampleMessages() {
		b, err := Append([]byte("before"), 42, m)
		if err != nil {
			t.Errorf("%T: %v", m, err)
			continue
		}
		b, ok := bytes.CutPrefix(b, []byte("before"))
		h, got, err := Decode(b)
		if err != nil || !ok || h.XID != 42 || h.Type != m.Type() || int(h.Length) != len(b) {
			t.Errorf("%T: header %+v, %v", m, h, err)
			continue
		}
		if d := cmp.Diff(m, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%T (-want +got):\n%s", m, d)
		}
	}
}

// TestTruncatedMessages cuts every message at every place; nothing must be read from
// beyond the end.
func TestTruncatedMessages(t *testing.T) {
	for _, m := range sampleMessages() {
		b, err := Append(nil, 42, m)
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			cut := bytes.Clone(b[:n:n])
			if _, _, err := Decode(cut); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%T cut to %d of %d bytes: %v", m, n, len(b), err)
			}
			if n < HeaderLen {
				continue
			}
			cut[2], cut[3] = byte(n>>8), byte(n)
			if _, _, err := Decode(cut); err != nil && !errors.Is(err, ErrMalformed) {
				t.Fatalf("%T with length %d of %d: %v", m, n, len(b), err)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	for _, m := range []Message{
		&EchoRequest{Data: make([]byte, 65528)},
		&PacketOut{Actions: Actions(make([]byte, 1<<16)), Data: nil},
		&BundleAdd{Message: &EchoRequest{Data: make([]byte, 65510)}},
	} {
		b, err := Append([]byte{1}, 0, m)
		if !errors.Is(err, ErrTooLong) || len(b) != 1 {
			t.Errorf("%T: %d bytes, %v", m, len(b), err)
		}
	}
}

func TestHelloSpeaks(t *testing.T) {
	tests := []struct {
		hello Hello
		want  bool
	}{
		{Hello{Version: 4}, true},
		{Hello{Version: 6}, true},
		{Hello{Version: 1}, false},
		{Hello{Version: 6, Bitmap: 1<<4 | 1<<6}, true},
		{Hello{Version: 6, Bitmap: 1<<1 | 1<<6}, false},
	}
	for _, tt := range tests {
		if got := tt.hello.Speaks(Version); got != tt.want {
			t.Errorf("%+v speaks 1.3: %v", tt.hello, got)
		}
	}
}

func TestErrorText(t *testing.T) {
	refused, err := Append(nil, 1, AddFlow(Flow{}))
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]*Error{
		"OFPBMC_BAD_PREREQ in reply to OFPT_FLOW_MOD":    {ErrType: 4, Code: 9, Data: refused},
		"OFPGMFC_GROUP_EXISTS":                           {ErrType: 6},
		"OFPBFC_MSG_FAILED":                              {ErrType: errExperimenter, Code: 2313, Experimenter: onfExperimenter},
		"error type 99 code 7":                           {ErrType: 99, Code: 7},
		"experimenter 0x5 error 3":                       {ErrType: errExperimenter, Code: 3, Experimenter: 5},
		`OFPHFC_INCOMPATIBLE: "we support version 0x06"`: {Data: []byte("we support version 0x06")},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMessageText(t *testing.T) {
	f := Flow{Table: 2, Priority: 7, Match: NewMatch().IP(), Instructions: NewInstructions().Goto(3)}
	for want, m := range map[string]Message{
		"flow add table=2, priority=7,ip actions=goto_table:3": AddFlow(f),
		"flow delete_strict table=2, priority=7,ip":            DeleteFlow(f.Key()),
		"flow delete table=255, cookie=0x10/0xf0":              DeleteFlows(TableAll, 0x10, 0xf0),
		"group delete all": DeleteGroup(GroupAll),
		"group modify group_id=3,type=all,bucket=actions=LOCAL":  ModifyGroup(Group{ID: 3, Buckets: NewBuckets().Add(NewActions().Output(PortLocal))}),
		"meter add meter=1,kbps,bands=type=drop,rate=5":          AddMeter(Meter{ID: 1, Flags: MeterKbps, Bands: NewBands().Drop(5, 0)}),
		"meter delete meter=1":                                   DeleteMeter(1),
		"packet out in_port=CONTROLLER actions=drop of 14 bytes": &PacketOut{InPort: PortController, Data: make([]byte, 14)},
		"OFPT_BARRIER_REQUEST":                                   &BarrierRequest{},
	} {
		if got := Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
