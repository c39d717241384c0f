package libopenflow

import (
	"net/netip"
	"testing"
)

const benchFlows = 20_000

func endpointFlow(i int) Flow {
	a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	return Flow{
		Table: 7, Priority: 100, Cookie: uint64(i),
		Match: NewMatch().Reg(2, 7).IP().IPv4Dst(netip.PrefixFrom(a, 32)),
		Instructions: NewInstructions().Apply(NewActions().DecTTL().SetEthSrc(MAC{0, 0, 0x11, 0x11, 0x11, 0x11}).
			SetEthDst(MAC{2, 2, 10, 0, byte(i >> 8), byte(i)}).SetTunID(uint64(i)).
			SetField(FieldTunDst.IsAddr(a)).SetReg(5, 1)).Goto(9),
	}
}

// BenchmarkBuild makes 20,000 flows.
func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for i := range benchFlows {
			if f := endpointFlow(i); f.Match == "" {
				b.Fatal("empty match")
			}
		}
	}
}

// BenchmarkEncode encodes 20,000 flow-mods.
func BenchmarkEncode(b *testing.B) {
	mods := make([]Message, benchFlows)
	for i := range mods {
		mods[i] = AddFlow(endpointFlow(i))
	}
	buf := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		for i, m := range mods {
			var err error
			if buf, err = Append(buf[:0], uint32(i), m); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDecode decodes 20,000 flows as they come in flow statistics.
func BenchmarkDecode(b *testing.B) {
	var msgs [][]byte
	var list FlowStatsList
	for i := range benchFlows {
		if list = append(list, FlowStats{Flow: endpointFlow(i)}); len(list) == 200 {
			m, err := Append(nil, 1, &MultipartReply{Kind: MultipartFlow, Body: list})
			if err != nil {
				b.Fatal(err)
			}
			msgs, list = append(msgs, m), nil
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, m := range msgs {
			if _, _, err := Decode(m); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkText writes 20,000 flows as text.
func BenchmarkText(b *testing.B) {
	f := endpointFlow(1)
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		for range benchFlows {
			buf = f.AppendText(buf[:0])
		}
	}
}
