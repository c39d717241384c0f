package libopenflow

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MAC is an Ethernet address. A net.HardwareAddr of six bytes converts with
// MAC(addr).
type MAC [6]byte

// ParseMAC reads the six-byte form "02:02:0a:01:01:02".
func ParseMAC(s string) (MAC, error) {
	var m MAC
	parts := strings.Split(s, ":")
	if len(parts) != len(m) {
		return MAC{}, fmt.Errorf("mac address %q: expected six hexadecimal bytes", s)
	}
	for i, p := range parts {
		b, err := strconv.ParseUint(p, 16, 8)
		if err != nil || len(p) > 2 {
			return MAC{}, fmt.Errorf("mac address %q: expected six hexadecimal bytes", s)
		}
		m[i] = byte(b)
	}
	return m, nil
}

// String returns the form "02:02:0a:01:01:02".
func (m MAC) String() string { return string(m.appendText(make([]byte, 0, 17))) }

func (m MAC) appendText(b []byte) []byte {
	const digits = "0123456789abcdef"
	for i, c := range m {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}

// word is a field value of up to 128 bits, right-aligned.
type word struct{ hi, lo uint64 }

func (w word) and(o word) word { return word{w.hi & o.hi, w.lo & o.lo} }
func (w word) not() word       { return word{^w.hi, ^w.lo} }
func (w word) zero() bool      { return w.hi == 0 && w.lo == 0 }

// ones returns a word with the n low bits set; n above 128 counts as 128.
func ones(n int) word {
	switch {
	case n <= 0:
		return word{}
	case n < 64:
		return word{lo: 1<<n - 1}
	case n == 64:
		return word{lo: ^uint64(0)}
	case n < 128:
		return word{hi: 1<<(n-64) - 1, lo: ^uint64(0)}
	}
	return word{^uint64(0), ^uint64(0)}
}

// shr shifts right by n bits.
func (w word) shr(n int) word {
	switch {
	case n <= 0:
		return w
	case n >= 128:
		return word{}
	case n >= 64:
		return word{lo: w.hi >> (n - 64)}
	}
	return word{w.hi >> n, w.lo>>n | w.hi<<(64-n)}
}

// bit reports whether bit n is set.
func (w word) bit(n int) bool { return w.shr(n).lo&1 == 1 }

// wordOf reads up to 16 big-endian bytes; bytes before the last 16 are ignored.
func wordOf(b []byte) word {
	var buf [16]byte
	if len(b) > 16 {
		b = b[len(b)-16:]
	}
	copy(buf[16-len(b):], b)
	return word{binary.BigEndian.Uint64(buf[:8]), binary.BigEndian.Uint64(buf[8:])}
}

// appendWord writes the n low bytes of w, n ≤ 16, big-endian.
func appendWord(b []byte, w word, n int) []byte {
	var buf [16]byte
	binary.BigEndian.PutUint64(buf[:8], w.hi)
	binary.BigEndian.PutUint64(buf[8:], w.lo)
	return append(b, buf[16-n:]...)
}

func (w word) as16() (a [16]byte) {
	binary.BigEndian.PutUint64(a[:8], w.hi)
	binary.BigEndian.PutUint64(a[8:], w.lo)
	return a
}

// FieldValue is a value of a field, perhaps of some of its bits only. It is what a
// match compares a packet with and what set_field writes. The zero FieldValue names
// no field; a match or action made from it is refused by the switch.
type FieldValue struct {
	Field Field
	value word
	mask  word
}

// Is returns the field with the exact value v. Bits beyond the field's width are cut.
func (f Field) Is(v uint64) FieldValue { return f.masked(word{lo: v}, ones(128)) }

// IsMasked returns the field with v in the bits that are set in mask.
func (f Field) IsMasked(v, mask uint64) FieldValue {
	return f.masked(word{lo: v}, word{lo: mask})
}

// Is128 returns the field with the exact big-endian value hi·2⁶⁴+lo, for the fields
// that are wider than 64 bits.
func (f Field) Is128(hi, lo uint64) FieldValue { return f.masked(word{hi, lo}, ones(128)) }

// IsMasked128 is IsMasked for fields that are wider than 64 bits.
func (f Field) IsMasked128(hi, lo, maskHi, maskLo uint64) FieldValue {
	return f.masked(word{hi, lo}, word{maskHi, maskLo})
}

// IsMAC returns an Ethernet address field with the exact value m.
func (f Field) IsMAC(m MAC) FieldValue { return f.masked(wordOf(m[:]), ones(128)) }

// IsMACMasked returns an Ethernet address field with m in the bits of mask.
func (f Field) IsMACMasked(m, mask MAC) FieldValue { return f.masked(wordOf(m[:]), wordOf(mask[:])) }

// IsAddr returns an IPv4, IPv6 or ARP address field with the exact value a. An
// address of the other family than the field's gives the zero FieldValue, because a
// value cut to fit would match the wrong packets.
func (f Field) IsAddr(a netip.Addr) FieldValue {
	if !a.IsValid() {
		return FieldValue{}
	}
	return f.IsPrefix(netip.PrefixFrom(a, a.BitLen()))
}

// IsPrefix returns an address field with the prefix p; 0.0.0.0/0 and ::/0 match
// everything. A prefix of the other family gives the zero FieldValue.
func (f Field) IsPrefix(p netip.Prefix) FieldValue {
	a := p.Addr().Unmap()
	bits := p.Bits()
	if p.Addr().Is4In6() {
		bits -= 96
	}
	if !p.IsValid() || bits < 0 || a.BitLen() != f.Bits() {
		return FieldValue{}
	}
	b := a.As16()
	w := wordOf(b[16-a.BitLen()/8:])
	return f.masked(w, ones(a.BitLen()).and(ones(a.BitLen()-bits).not()))
}

func (f Field) masked(v, m word) FieldValue {
	if !f.valid() {
		return FieldValue{}
	}
	m = m.and(ones(f.Bits()))
	return FieldValue{Field: f, value: v.and(m), mask: m}
}

// Exact reports whether every bit of the field has a value.
func (v FieldValue) Exact() bool { return v.Field.valid() && v.mask == ones(v.Field.Bits()) }

// Uint64 returns the low 64 bits of the value.
func (v FieldValue) Uint64() uint64 { return v.value.lo }

// MaskUint64 returns the low 64 bits of the mask.
func (v FieldValue) MaskUint64() uint64 { return v.mask.lo }

// MAC returns the value of an Ethernet address field.
func (v FieldValue) MAC() MAC {
	b := v.value.as16()
	return MAC(b[10:])
}

// Addr returns the value of an address field; the zero Addr for other fields.
func (v FieldValue) Addr() netip.Addr {
	b := v.value.as16()
	switch v.Field.Bits() {
	case 32:
		return netip.AddrFrom4([4]byte(b[12:]))
	case 128:
		return netip.AddrFrom16(b)
	}
	return netip.Addr{}
}

// Subfield is a run of bits of a field: N bits from bit Offset (0 is the lowest).
type Subfield struct {
	Field  Field
	Offset uint16
	N      uint16
}

// All returns the whole field as a Subfield.
func (f Field) All() Subfield { return Subfield{Field: f, N: uint16(f.Bits())} }

// Range returns the bits from to to, both included, as in "NXM_NX_REG0[from..to]".
// Bits outside the field or in the wrong order give the zero Subfield.
func (f Field) Range(from, to int) Subfield {
	if from < 0 || to < from || to >= f.Bits() {
		return Subfield{}
	}
	return Subfield{Field: f, Offset: uint16(from), N: uint16(to - from + 1)}
}

// ofsNBits is the 16-bit form of Offset and N in Nicira actions (ofs << 6 | n-1).
func (s Subfield) ofsNBits() uint16 { return s.Offset<<6 | (s.N-1)&0x3f }
