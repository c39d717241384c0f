package conntable

import (
	"net/netip"
	"testing"
)

// TestParse reads lines as Open vSwitch 2.17 to 3.5 print them.
func TestParse(t *testing.T) {
	a := netip.MustParseAddr
	for line, want := range map[string]Entry{
		"tcp,orig=(src=10.1.1.2,dst=10.1.1.3,sport=40000,dport=80),reply=(src=10.1.1.3,dst=10.1.1.2,sport=80,dport=40000),zone=1,mark=2468,labels=0x1000000020000000300000004,protoinfo=(state=ESTABLISHED)\n": {
			Proto: 6, Zone: 1, Mark: 2468, LabelHi: 0x100000002, LabelLo: 0x300000004, State: "ESTABLISHED",
			Orig:  Tuple{Src: a("10.1.1.2"), Dst: a("10.1.1.3"), SrcPort: 40000, DstPort: 80},
			Reply: Tuple{Src: a("10.1.1.3"), Dst: a("10.1.1.2"), SrcPort: 80, DstPort: 40000},
		},
		"udp,orig=(src=2001:db8::1,dst=2001:db8::2,sport=5,dport=53,packets=3,bytes=300),reply=(src=2001:db8::2,dst=2001:db8::1,sport=53,dport=5,packets=1,bytes=99),start=1,zone=32769,timeout=30": {
			Proto: 17, Zone: 32769,
			Orig:  Tuple{Src: a("2001:db8::1"), Dst: a("2001:db8::2"), SrcPort: 5, DstPort: 53, Packets: 3, Bytes: 300},
			Reply: Tuple{Src: a("2001:db8::2"), Dst: a("2001:db8::1"), SrcPort: 53, DstPort: 5, Packets: 1, Bytes: 99},
		},
		"icmp,orig=(src=10.1.1.2,dst=10.1.1.3,id=77,type=8,code=0),reply=(src=10.1.1.3,dst=10.1.1.2,id=77,type=0,code=0),zone=2,labels=0x7": {
			Proto: 1, Zone: 2, LabelLo: 7,
			Orig:  Tuple{Src: a("10.1.1.2"), Dst: a("10.1.1.3"), ID: 77, Type: 8},
			Reply: Tuple{Src: a("10.1.1.3"), Dst: a("10.1.1.2"), ID: 77},
		},
		"47,orig=(src=10.1.1.2,dst=10.1.1.3,sport=0,dport=0),reply=(src=10.1.1.3,dst=10.1.1.2,sport=0,dport=0),zone=1,protoinfo=(state_orig=TIME_WAIT,state_reply=TIME_WAIT)": {
			Proto: 47, Zone: 1, State: "TIME_WAIT",
			Orig: Tuple{Src: a("10.1.1.2"), Dst: a("10.1.1.3")}, Reply: Tuple{Src: a("10.1.1.3"), Dst: a("10.1.1.2")},
		},
	} {
		var got Entry
		if ok := Parse(line, &got); !ok {
			t.Errorf("%s is not read", line)
		}
		want.hasOrig, want.hasRe = true, true
		if got != want {
			t.Errorf("%s:\n%+v\nwant\n%+v", line, got, want)
		}
	}
	for _, line := range []string{
		"", "\n", "tcp", "tcp,", "tcp,orig=(", "tcp,orig=()", "tcp,orig=(src=10.1.1.1),reply=(src=1,dst=2)", "foo,orig=(src=10.1.1.1,dst=10.1.1.2)",
		"tcp,orig=(src=10.1.1.2,dst=10.1.1.3,sport=70000,dport=80),reply=(src=10.1.1.3,dst=10.1.1.2,sport=80,dport=1)",
		"tcp,orig=(src=10.1.1.2,dst=10.1.1.3,sport=1,dport=80),reply=(src=10.1.1.3,dst=10.1.1.2,sport=80,dport=1),labels=0x123456789012345678901234567890123",
	} {
		if Parse(line, &Entry{}) {
			t.Errorf("%q is read", line)
		}
	}
}

// TestLabel: the numbers in a label are where the pipeline puts them.
func TestLabel(t *testing.T) {
	e := Entry{LabelHi: 0x0000000500000003, LabelLo: 0x0000000200000001}
	for at, want := range map[uint]uint32{0: 1, 32: 2, 64: 3, 96: 5} {
		if got := e.Label(at); got != want {
			t.Errorf("bits from %d: %d, want %d", at, got, want)
		}
	}
}

// TestParseAllocatesNothing: a table has many lines.
func TestParseAllocatesNothing(t *testing.T) {
	const line = "tcp,orig=(src=10.1.1.2,dst=10.1.1.3,sport=40000,dport=80),reply=(src=10.1.1.3,dst=10.1.1.2,sport=80,dport=40000),zone=1,mark=2468,labels=0x1000000020000000300000004,protoinfo=(state=ESTABLISHED)"
	var e Entry
	if n := testing.AllocsPerRun(100, func() { Parse(line, &e) }); n != 0 {
		t.Errorf("%g allocations per line", n)
	}
}

// FuzzParse: the text is a switch's, whose packets are anybody's.
func FuzzParse(f *testing.F) {
	f.Add("tcp,orig=(src=10.1.1.2,dst=10.1.1.3,sport=40000,dport=80),reply=(src=10.1.1.3,dst=10.1.1.2,sport=80,dport=40000),zone=1,mark=2468,labels=0x10,protoinfo=(state=ESTABLISHED)")
	f.Add("icmp,orig=(src=::1,dst=::2,id=77,type=8,code=0),reply=(src=::2,dst=::1,id=77,type=0,code=0)")
	f.Fuzz(func(t *testing.T, line string) {
		var e Entry
		if Parse(line, &e) && (!e.Orig.Src.IsValid() || !e.Reply.Dst.IsValid()) {
			t.Errorf("%q has no addresses", line)
		}
	})
}
