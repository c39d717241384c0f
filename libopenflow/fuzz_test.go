package libopenflow

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDecode feeds bytes from anywhere. What can be decoded must survive an encoding
// and a second decoding, and have a text.
func FuzzDecode(f *testing.F) {
	for _, m := range sampleMessages() {
		b, err := Append(nil, 7, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		_ = Text(m)
		again, err := Append(nil, h.XID, m)
		if errors.Is(err, ErrTooLong) {
			return // the canonical form can be a little longer
		}
		if err != nil {
			t.Fatal(err)
		}
		_, m2, err := Decode(again)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if hello, ok := m.(*Hello); ok {
			hello.Version = Version
		}
		if d := cmp.Diff(m, m2, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Fatalf("second decoding differs:\n%s", d)
		}
	})
}

// FuzzMatch checks that bringing a match into canonical form is idempotent, and that
// the text of a canonical match reads back as the same match.
func FuzzMatch(f *testing.F) {
	for _, line := range goldenFlows(f) {
		flow, err := ParseFlow(line)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(flow.Match))
	}
	f.Add([]byte("\x00\x00\x00\x0200"))                      // NXM's 16-bit in_port
	f.Add([]byte("\x00\x01\xd1\x040000"))                    // tun_flags with a mask of unknown bits
	f.Add([]byte("\xff\xff\x55\x08ONF\x00\x00\x02\x00\x12")) // tcp_flags
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMatch(b)
		if err != nil {
			return
		}
		again, err := decodeMatch([]byte(m))
		if err != nil || again != m {
			t.Fatalf("canonical form of %x is %x, of that %x (%v)", b, string(m), string(again), err)
		}
		_ = m.String()
		for v := range m.Fields() {
			if with := m.With(v); with != m {
				t.Fatalf("setting %v again changes the match:\n%x\n%x", v.Field, string(m), string(with))
			}
		}
	})
}

// FuzzActions checks that any well-formed list has a text.
func FuzzActions(f *testing.F) {
	for _, line := range goldenFlows(f) {
		flow, err := ParseFlow(line)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(flow.Instructions))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := decodeActions(b); err == nil && a.String() == "" {
			t.Error("actions without text")
		}
		r := &reader{b: b}
		i := r.instructions()
		if r.err != nil {
			return
		}
		if i.String() == "" {
			t.Error("instructions without text")
		}
		r = &reader{b: []byte(i)}
		if again := r.instructions(); r.err != nil || again != i {
			t.Errorf("instructions %x change to %x when read again (%v)", string(i), string(again), r.err)
		}
	})
}

// FuzzParseFlow checks that text that can be read is written as text that reads the
// same.
func FuzzParseFlow(f *testing.F) {
	for _, line := range goldenFlows(f) {
		f.Add(line)
	}
	f.Add("cookie=0x0, duration=1.5s, table=3, n_packets=0, n_bytes=0, idle_age=3, priority=5,ip actions=drop")
	f.Fuzz(func(t *testing.T, s string) {
		flow, err := ParseFlow(s)
		if err != nil {
			return
		}
		text := flow.String()
		again, err := ParseFlow(text)
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", s, text, err)
		}
		if again != flow {
			t.Fatalf("%q is written as %q, which reads as %q", s, text, again)
		}
	})
}

// FuzzParseGroup does the same for groups.
func FuzzParseGroup(f *testing.F) {
	for _, g := range goldenGroups {
		f.Add(g)
	}
	f.Add("bucket=weight:1")
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGroup(s)
		if err != nil {
			return
		}
		again, err := ParseGroup(g.String())
		if err != nil || again != g {
			t.Fatalf("%q is written as %q, which reads as %q (%v)", s, g, again, err)
		}
	})
}
