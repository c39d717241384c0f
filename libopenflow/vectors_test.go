package libopenflow

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noCookies is the part of a flow-mod before the table: cookie and mask of zero.
const noCookies = "00000000000000000000000000000000 "

// TestMessageVectors holds messages as Open vSwitch 3.1 makes or takes them.
func TestMessageVectors(t *testing.T) {
	tests := []struct {
		name string
		xid  uint32
		msg  Message
		hex  string
	}{{
		"flow add with metadata", 6,
		AddFlow(Flow{
			Table: 4, Priority: 100, Cookie: 0x2a,
			Match:        NewMatch().Metadata(0x100000000, 0xff00000000).IP().IPv4Dst(netip.MustParsePrefix("10.1.1.2/32")),
			Instructions: NewInstructions().WriteMetadata(0xc8, 0xfffe).Goto(5),
		}),
		`040e007800000006 000000000000002a 0000000000000000 04 00 0000 0000 0064 ffffffff ffffffff ffffffff 0000 0000
		0001 0026 80000a02 0800 80001804 0a010102 80000510 0000000100000000 000000ff00000000 0000
		0002 0018 00000000 00000000000000c8 000000000000fffe 0001 0008 05000000`,
	}, {
		"flow add to the controller", 6,
		AddFlow(Flow{
			Priority: 100,
			Match: NewMatch().IP().EthSrcMasked(MAC{2, 2}, MAC{0xff, 0xff}).
				IPProto(ProtoUDP).UDPDst(53),
			Instructions: NewInstructions().Apply(NewActions().Output(PortController)),
		}),
		`040e0070 00000006 ` + noCookies + `00 00 0000 0000 0064 ffffffff ffffffff ffffffff 0000 0000
		0001 0025 8000090c 020200000000 ffff00000000 80000a02 0800 80001401 11 80002002 0035 000000
		0004 0018 00000000 0000 0010 fffffffd ffff 000000000000`,
	}, {
		"flow add with a pushed tag", 6,
		AddFlow(Flow{
			Table: 1, Priority: 10, Match: NewMatch().InPort(14),
			Instructions: NewInstructions().Goto(3).WriteMetadata(0x100640000, 0xff7fff0000).
				Apply(NewActions().PushVLAN().SetVLAN(1)),
		}),
		`040e0080 00000006 ` + noCookies + `01 00 0000 0000 000a ffffffff ffffffff ffffffff 0000 0000
		0001 000c 80000004 0000000e 00000000
		0004 0020 00000000 0011 0008 8100 0000 0019 0010 80000c02 1001 000000000000
		0002 0018 00000000 0000000100640000 000000ff7fff0000 0001 0008 03000000`,
	}, {
		"flow add with ONF tcp_flags", 6,
		AddFlow(Flow{
			Table: 5, Priority: 110,
			Match: NewMatch().IP().IPProto(ProtoTCP).With(FieldTCPFlags.IsMasked(2, 0x12)).
				Metadata(0x640190, 0x7ffffffe),
			Instructions: NewInstructions().Goto(6),
		}),
		`040e0068 00000006 ` + noCookies + `05 00 0000 0000 006e ffffffff ffffffff ffffffff 0000 0000
		0001 002f 80000a02 0800 80001401 06 ffff5508 4f4e4600 0002 0012
		80000510 0000000000640190 000000007ffffffe 00 0001 0008 06000000`,
	}, {
		"group add", 6,
		AddGroup(Group{ID: 7, Buckets: NewBuckets().
			Add(NewActions().SetTunID(10000).PopVLAN().Output(3)).
			Add(NewActions().PopVLAN().Output(1))}),
		`040f0070 00000006 0000 00 00 00000007
		0038 0000 ffffffff ffffffff 00000000 0019 0010 80004c08 0000000000002710 0012 0008 00000000 0000 0010 00000003 0000 000000000000
		0028 0000 ffffffff ffffffff 00000000 0012 0008 00000000 0000 0010 00000001 0000 000000000000`,
	}, {
		"meter add", 2,
		AddMeter(Meter{ID: 1, Flags: MeterKbps | MeterBurst, Bands: NewBands().Drop(10000, 1000)}),
		`041d0020 00000002 0000 0005 00000001 0001 0010 00002710 000003e8 00000000`,
	}, {
		"bundle open", 7, &BundleControl{Step: BundleOpen, Flags: BundleAtomic | BundleOrdered},
		`04040018 00000007 4f4e4600 000008fc 00000000 0000 0003`,
	}, {
		"bundle add", 6,
		&BundleAdd{Flags: BundleAtomic | BundleOrdered, Message: AddFlow(Flow{Table: 9, Priority: 1})},
		`04040050 00000006 4f4e4600 000008fd 00000000 0000 0003
		040e0038 00000006 ` + noCookies + `09 00 0000 0000 0001 ffffffff ffffffff ffffffff 0000 0000 0001 0004 00000000`,
	}, {
		"bundle commit", 9, &BundleControl{Step: BundleCommit, Flags: BundleAtomic | BundleOrdered},
		`04040018 00000009 4f4e4600 000008fc 00000000 0004 0003`,
	}, {
		"packet in", 0,
		&PacketIn{
			Buffer: NoBuffer, TotalLen: 42, Reason: ReasonAction, Table: 4, Cookie: 0x77,
			Match: NewMatch().InPort(1).Metadata(0x100640000, ^uint64(0)), Data: bytes.Repeat([]byte{0xab}, 42),
		},
		`040a005c 00000000 ffffffff 002a 01 04 0000000000000077
		0001 0018 80000004 00000001 80000408 0000000100640000 0000 ` + strings.Repeat("ab", 42),
	}, {
		"port status", 0,
		&PortStatus{Reason: PortAdded, Port: Port{
			Number: 3, MAC: MAC{0x56, 0x43, 0xb5, 0xe1, 0x9a, 0xac}, Name: "tapx", State: PortLive,
		}},
		`040c0050 00000000 00 00000000000000 00000003 00000000 5643b5e19aac 0000
		74617078 000000000000000000000000 00000000 00000004 ` + strings.Repeat("00", 24),
	}, {
		"flush conntrack zone", 1, &FlushCTZone{Zone: 5},
		`04040018 00000001 00002320 0000001d 000000000000 0005`,
	}, {
		"flush connections by tuple", 1,
		&FlushCT{Proto: 6, Zone: 5, Orig: CTTuple{
			netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.1.1.2"), 80, 81,
		}},
		`04040068 00000001 00002320 00000020 06 00000000000000 0000 0048 00000000
		0000 0014 00000000000000000000ffff0a010101 00000000 0001 0014 00000000000000000000ffff0a010102 00000000
		0002 0008 0050 0000 0003 0008 0051 0000 0002 0008 0005 0000`,
	}, {
		"set controller id", 1, &SetControllerID{ID: 9}, `04040018 00000001 00002320 00000014 000000000000 0009`,
	}, {
		"set packet-in format", 1, &SetPacketInFormat{Format: PacketInFormat2}, `04040014 00000001 00002320 00000010 00000002`,
	}, {
		"hello", 1, &Hello{Version: 4, Bitmap: 1<<4 | 1<<1}, `04000010 00000001 0001 0008 00000012`,
	}, {
		"echo reply", 9, &EchoReply{Data: []byte{1, 2, 3}}, `0403000b 00000009 010203`,
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.hex)
			got, err := Append(nil, tt.xid, tt.msg)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("encode:\n got %x\nwant %x", got, want)
			}
			h, m, err := Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			if h.XID != tt.xid {
				t.Errorf("xid %d, want %d", h.XID, tt.xid)
			}
			if d := cmp.Diff(tt.msg, m, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
				t.Errorf("decode (-want +got):\n%s", d)
			}
		})
	}
}

// TestActionVectors holds single actions.
func TestActionVectors(t *testing.T) {
	tests := []struct {
		name string
		a    Actions
		hex  string
	}{
		{"conjunction", NewActions().Conjunction(100, 1, 2), `ffff 0010 00002320 0022 01 02 00000064`},
		{
			"ct with zone from a register",
			NewActions().CT(CT{Recirc: true, Table: 4, ZoneFrom: FieldReg(2).Range(0, 15), NAT: NAT{Kind: NATExisting}}),
			`ffff 0028 00002320 0023 0000 00010404 000f 04 000000 0000 ffff 0010 00002320 0024 0000 0000 0000`,
		},
		{
			"ct commit with mark",
			NewActions().CT(CT{Commit: true, ZoneFrom: FieldReg(2).Range(0, 15), Exec: NewActions().SetField(FieldCTMark.Is(5))}),
			`ffff 0028 00002320 0023 0001 00010404 000f ff 000000 0000 0019 0010 0001d604 00000005 00000000`,
		},
		{
			"nat to an address and port",
			NewActions().CT(CT{NAT: NAT{Kind: NATDest, Min: netip.MustParseAddr("10.1.1.2"), MinPort: 8080}}),
			`ffff 0030 00002320 0023 0000 00000000 0000 ff 000000 0000 ffff 0018 00002320 0024 0000 0002 0011 0a010102 1f90 0000`,
		},
		{
			"multipath",
			NewActions().Multipath(Multipath{Fields: HashSymmetricL3UDP, Basis: 50, Links: 4, Dst: FieldReg(3).Range(0, 3)}),
			`ffff 0020 00002320 000a 0003 0032 0000 0000 0003 00000000 0000 0003 00010604`,
		},
		{"set tun_dst", NewActions().SetField(FieldTunDst.IsAddr(netip.MustParseAddr("192.168.2.11"))), `0019 0010 00014004 c0a8020b 00000000`},
		{"load", NewActions().Load(FieldReg(1).All(), 5), `ffff 0018 00002320 0007 001f 00010204 0000000000000005`},
		{"output register", NewActions().OutputReg(FieldReg(3).All()), `ffff 0018 00002320 000f 001f 00010604 ffff 000000000000`},
		{"nd_options_type", NewActions().SetField(FieldNDOptionsType.Is(2)), `0019 0010 10000401 02 00000000000000`},
		{"nd_reserved", NewActions().SetField(FieldNDReserved.Is(0x60000000)), `0019 0010 10000204 60000000 00000000`},
		{"move", NewActions().MoveField(FieldEthSrc, FieldEthDst), `ffff 0018 00002320 0006 0030 0000 0000 00000406 00000206`},
		{"dec_ttl", NewActions().DecTTL(), `0018 0008 00000000`},
		{"group", NewActions().Group(9), `0016 0008 00000009`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.hex)
			if string(tt.a) != string(want) {
				t.Errorf("got  %x\nwant %x", string(tt.a), want)
			}
			if got, err := decodeActions(want); err != nil || got != tt.a {
				t.Errorf("decode: %x, %v", string(got), err)
			}
		})
	}
}

// TestMatchVectors holds single match fields.
func TestMatchVectors(t *testing.T) {
	tests := []struct {
		name string
		m    Match
		hex  string
	}{
		{"ct_state", NewMatch().CTState(CTTracked|CTNew, CTTracked|CTNew), `0001d308 00000021 00000021`},
		{"exact ct_state", NewMatch().With(FieldCTState.Is(0x21)), `0001d308 00000021 000000ff`},
		{"tun_id", NewMatch().TunID(10), `80004c08 000000000000000a`},
		{"mask of all ones", NewMatch().RegMasked(0, 1, ^uint32(0)), `00010004 00000001`},
		{"mask of zero", NewMatch().RegMasked(0, 1, 0), ``},
		{"value outside the mask", NewMatch().RegMasked(0, 0xff, 0xf), `00010108 0000000f 0000000f`},
		{"xreg", NewMatch().With(FieldXReg(1).Is(5)), `00010404 00000000 00010604 00000005`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.hex)
			if string(tt.m) != string(want) {
				t.Errorf("got  %x\nwant %x", string(tt.m), want)
			}
		})
	}
}

// TestMatchNormalises decodes spellings that the switch accepts but does not use.
func TestMatchNormalises(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want Match
	}{
		{"tun_id of NXM", `00012008 000000000000000a`, NewMatch().TunID(10)},
		{"tcp_flags of OpenFlow 1.5", `80000a02 0800 80001401 06 80005504 0002 0012`, NewMatch().IP().IPProto(6).With(FieldTCPFlags.IsMasked(2, 0x12))},
		{"wrong order", `80001401 06 80000a02 0800`, NewMatch().IP().IPProto(6)},
		{"given twice", `80000a02 0806 80000a02 0800`, NewMatch().IP()},
		{"full mask", `80001908 0a000001 ffffffff`, NewMatch().IPv4Dst(netip.MustParsePrefix("10.0.0.1/32"))},
		{"empty mask", `80001908 0a000001 00000000`, NewMatch()},
		{"bits outside the mask", `80001908 0a0000ff ffffff00`, NewMatch().IPv4Dst(netip.MustParsePrefix("10.0.0.0/24"))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeMatch(unhex(t, tt.hex))
			if err != nil || got != tt.want {
				t.Errorf("got %x, %v\nwant %x", string(got), err, string(tt.want))
			}
		})
	}
}

func TestMistakesNeverWidenAMatch(t *testing.T) {
	v6 := netip.MustParsePrefix("2001:db8::/32")
	for name, m := range map[string]Match{
		"IPv6 prefix for an IPv4 field": NewMatch().IP().IPv4Dst(v6),
		"register 16":                   NewMatch().IP().Reg(16, 1),
		"no address":                    NewMatch().IP().TunSrc(netip.Addr{}),
		"subfield-only field":           NewMatch().IP().With(FieldVLANTCI.Is(1)),
	} {
		if !strings.Contains(string(m), string(poison)) {
			t.Errorf("%s: match %x is not one that the switch refuses", name, string(m))
		}
	}
}
