package libopenflow

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// drawValue draws a condition on a field that can be matched and printed.
func drawValue(t *rapid.T) FieldValue {
	f := Field(rapid.IntRange(int(FieldNone)+1, int(FieldInPort16)-1).Draw(t, "field"))
	hi, lo := rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")
	if rapid.Bool().Draw(t, "exact") {
		return f.Is128(hi, lo)
	}
	return f.IsMasked128(hi, lo, rapid.Uint64().Draw(t, "mask hi"), rapid.Uint64().Draw(t, "mask lo"))
}

// TestMatchOrderDoesNotMatter builds the same match in any order, from the wire in
// any order, and gets the same value each time.
func TestMatchOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byField := map[Field]FieldValue{}
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			v := drawValue(t)
			byField[v.Field] = v
		}
		var values []FieldValue
		var want Match
		for _, v := range byField {
			values = append(values, v)
			want = want.With(v)
		}
		rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		var other Match
		var wire []byte
		for _, v := range values {
			other = other.With(v)
			wire = v.appendOXM(wire)
		}
		if other != want {
			t.Fatalf("order matters:\n%x\n%x", string(want), string(other))
		}
		if got, err := decodeMatch(wire); err != nil || got != want {
			t.Fatalf("from the wire: %x, %v\nwant %x", string(got), err, string(want))
		}
		for v := range want.Fields() {
			if x := byField[v.Field].cut(); x.value != v.value || x.mask != v.mask {
				t.Fatalf("%v is %+v, want %+v", v.Field, v, x)
			}
		}
	})
}

// drawMatch draws a match with its prerequisites, as a pipeline would build it.
func drawMatch(t *rapid.T) Match {
	m := NewMatch()
	maybe := func(what string, f func()) {
		if rapid.Bool().Draw(t, what) {
			f()
		}
	}
	u32 := func(what string) uint32 { return rapid.Uint32().Draw(t, what) }
	maybe("in_port", func() { m = m.InPort(u32("port") % 0xff00) })
	maybe("reg", func() { m = m.RegMasked(int(u32("n")%16), u32("reg"), u32("mask")) })
	maybe("metadata", func() { m = m.Metadata(rapid.Uint64().Draw(t, "v"), rapid.Uint64().Draw(t, "m")) })
	maybe("tun", func() { m = m.TunID(rapid.Uint64().Draw(t, "id")) })
	maybe("ct", func() { m = m.CTState(u32("state"), u32("state mask")) })
	maybe("vlan", func() { m = m.VLAN(uint16(u32("vid"))) })
	maybe("src", func() { m = m.EthSrcMasked(MAC{byte(u32("a")), 2}, MAC{0xff, byte(u32("b"))}) })
	maybe("conj", func() { m = m.ConjID(u32("id")) })
	bits := rapid.IntRange(0, 32).Draw(t, "bits")
	v4 := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(u32("x")), 1, 2}), bits)
	v6 := netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(u32("y"))}), bits*4)
	port := uint16(u32("tp"))
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 1:
		m = m.ARP(1).ARPTPA(v4).ARPSHA(MAC{1, 2, 3})
	case 2:
		m = m.Dst(v4).IPProto(ProtoTCP).TCPDst(port).With(FieldTCPFlags.IsMasked(2, 0x12))
	case 3:
		m = m.Src(v6).IPProto(ProtoUDP).UDPDst(port)
	case 4:
		m = m.ICMPv6(135).NDTarget(v6.Addr())
	case 5:
		m = m.EthType(port)
	}
	return m
}

func drawActions(t *rapid.T) Actions {
	a := NewActions()
	u32 := func(what string) uint32 { return rapid.Uint32().Draw(t, what) }
	for range rapid.IntRange(0, 6).Draw(t, "actions") {
		reg := FieldReg(int(u32("reg") % 16))
		from := int(u32("from") % 16)
		sub := reg.Range(from, from+int(u32("len")%16))
		switch rapid.IntRange(0, 12).Draw(t, "action") {
		case 0:
			a = a.Output(1 + u32("port")%1000)
		case 1:
			a = a.SetReg(int(u32("n")%16), u32("v"))
		case 2:
			a = a.SetField(reg.IsMasked(uint64(u32("v")), uint64(u32("m"))))
		case 3:
			a = a.Load(sub, uint64(u32("v")))
		case 4:
			a = a.Move(sub, FieldMetadata.Range(3, 2+int(sub.N)))
		case 5:
			a = a.Group(u32("group")).DecTTL()
		case 6:
			a = a.Controller(Controller{MaxLen: uint16(u32("len")), ID: uint16(u32("id")), Miss: u32("miss")&1 == 1, Meter: u32("meter")})
		case 7:
			a = a.Resubmit(uint8(u32("table") % 254))
		case 8:
			addr := func(n uint32) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
			if u32("v6")&1 == 1 {
				addr = func(n uint32) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 1, 15: byte(n)}) }
			}
			a = a.CT(CT{
				Commit: true, Recirc: u32("recirc")&1 == 1, Table: uint8(u32("table") % 254), Zone: uint16(u32("zone")),
				NAT: NAT{
					Kind: NATKind(u32("kind") % 4), Min: addr(u32("lo")), Max: addr(u32("hi")),
					MinPort: uint16(u32("port")), MaxPort: uint16(u32("port")), Flags: NATRandom,
				},
				Exec: NewActions().SetField(FieldCTMark.Is(uint64(u32("mark")))),
			})
			if a.String() == "" {
				t.Fatal("no text")
			}
		case 9:
			a = a.Conjunction(u32("id"), uint8(u32("clause")%63), 64)
		case 10:
			a = a.Learn(Learn{
				Table: uint8(u32("table")), Priority: uint16(u32("prio")), Cookie: uint64(u32("cookie")),
				IdleTimeout: uint16(u32("idle")), Specs: []LearnSpec{
					LearnMatch(FieldEthType.All(), EthTypeIPv4), LearnMatchField(FieldIPv4Dst.All(), FieldIPv4Src.All()),
					LearnLoad(uint64(u32("v")), sub), LearnLoadField(sub, sub), LearnOutput(FieldInPort16.All()),
				},
			})
		case 11:
			a = a.OutputReg(sub).OutputInPort().PushVLAN().SetVLAN(uint16(u32("vid"))).PopVLAN()
		case 12:
			a = a.Multipath(Multipath{Fields: HashSymmetricL4, Links: 1 + u32("links")%0x10000, Dst: sub})
		}
	}
	return a
}

func drawFlow(t *rapid.T) Flow {
	f := Flow{
		Table: rapid.Byte().Draw(t, "table"), Priority: rapid.Uint16().Draw(t, "priority"),
		Cookie: rapid.Uint64().Draw(t, "cookie"), IdleTimeout: rapid.Uint16().Draw(t, "idle"),
		HardTimeout: rapid.Uint16().Draw(t, "hard"), Flags: rapid.Uint16Range(0, 31).Draw(t, "flags"),
		Match: drawMatch(t),
	}
	i := NewInstructions()
	if rapid.Bool().Draw(t, "goto") {
		i = i.Goto(rapid.Byte().Draw(t, "next"))
	}
	if rapid.Bool().Draw(t, "metadata") {
		i = i.WriteMetadata(rapid.Uint64().Draw(t, "v"), rapid.Uint64().Draw(t, "m"))
	}
	if rapid.Bool().Draw(t, "meter") {
		i = i.Meter(rapid.Uint32().Draw(t, "id"))
	}
	f.Instructions = i.Apply(drawActions(t))
	return f
}

// TestFlowSurvivesTextAndWire writes random flows as text and as bytes and reads them
// back.
func TestFlowSurvivesTextAndWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFlow(t)
		got, err := ParseFlow(f.String())
		if err != nil {
			t.Fatalf("%v\n%v", f, err)
		}
		if got != f {
			t.Fatalf("text reads as another flow:\n%v\n%v", f, got)
		}
		b, err := Append(nil, 1, AddFlow(f))
		if err != nil {
			t.Fatal(err)
		}
		_, m, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(*FlowMod).Flow; got != f {
			t.Fatalf("bytes read as another flow:\n%v\n%v", f, got)
		}
	})
}

// TestNATMaxPortWithoutMinPort: a last port without a first one means nothing to Open
// vSwitch, so the action that was asked for equals the one that the switch reports.
func TestNATMaxPortWithoutMinPort(t *testing.T) {
	nat := NAT{Kind: NATSource, Min: netip.MustParseAddr("10.0.0.0"), MaxPort: 1, Flags: NATRandom}
	odd := NewActions().CT(CT{Commit: true, NAT: nat})
	nat.MaxPort = 0
	if plain := NewActions().CT(CT{Commit: true, NAT: nat}); odd != plain {
		t.Errorf("with the last port alone: %s, expected %s", odd, plain)
	}
}
