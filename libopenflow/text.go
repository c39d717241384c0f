package libopenflow

import (
	"math/bits"
	"net/netip"
	"strconv"
)

// utoa is the decimal form of v.
func utoa(v uint64) string { return strconv.FormatUint(v, 10) }

// appendDec writes v in decimal.
func appendDec(b []byte, v uint64) []byte { return strconv.AppendUint(b, v, 10) }

// appendHex writes v as C's "%#x": 0 has no prefix.
func appendHex(b []byte, v uint64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// appendHexPad writes v with at least digits hexadecimal digits and a prefix.
func appendHexPad(b []byte, v uint64, digits int) []byte {
	b = append(b, "0x"...)
	for n := max(1, (bits.Len64(v)+3)/4); n < digits; n++ {
		b = append(b, '0')
	}
	return strconv.AppendUint(b, v, 16)
}

// appendHexWord writes a value of up to 128 bits like appendHex.
func appendHexWord(b []byte, w word) []byte {
	if w.hi == 0 {
		return appendHex(b, w.lo)
	}
	b = appendHex(b, w.hi)
	for n := max(1, (bits.Len64(w.lo)+3)/4); n < 16; n++ {
		b = append(b, '0')
	}
	return strconv.AppendUint(b, w.lo, 16)
}

// portNames are the reserved ports by name.
var portNames = map[uint32]string{
	PortInPort: "IN_PORT", PortTable: "TABLE", PortNormal: "NORMAL", PortFlood: "FLOOD",
	PortAll: "ALL", PortController: "CONTROLLER", PortLocal: "LOCAL", PortAny: "ANY",
}

// appendPort writes a port number; reserved ones by name. The switch keeps port
// numbers in 16 bits and shows the others of the reserved range so.
func appendPort(b []byte, p uint32) []byte {
	if n, ok := portNames[p]; ok {
		return append(b, n...)
	}
	if p >= PortMax {
		p &= 0xffff
	}
	return appendDec(b, uint64(p))
}

// appendPort16 writes a 16-bit port number of OpenFlow 1.0.
func appendPort16(b []byte, p uint16) []byte {
	if p >= 0xff00 {
		return appendPort(b, uint32(p)|0xffff0000)
	}
	return appendDec(b, uint64(p))
}

// flagNames name the bits of a flags field, lowest first.
var (
	ctStateNames = []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}
	tcpFlagNames = []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"}
	tunFlagNames = []string{"oam"}
	fragNames    = map[[2]uint64]string{{0, 3}: "no", {1, 1}: "yes", {1, 3}: "first", {3, 3}: "later", {0, 2}: "not_later"}
	hashNames    = []string{"eth_src", "symmetric_l4", "symmetric_l3l4", "symmetric_l3l4+udp", "nw_src", "nw_dst", "symmetric_l3"}
	algNames     = []string{"modulo_n", "hash_threshold", "hrw", "iter_hash"}
	bundleNames  = []string{"active_backup", "hrw"}
)

// flagsOf returns the names of a field's bits and all the bits that can be matched.
func flagsOf(f fieldFormat) (names []string, all uint64) {
	switch f {
	case fmtCTState:
		return ctStateNames, ctStateKnown
	case fmtTCPFlags:
		return tcpFlagNames, 0xfff
	case fmtTunFlags:
		return tunFlagNames, tunFlagsKnown
	}
	return nil, 0
}

func appendFlag(b []byte, names []string, bit int) []byte {
	if bit < len(names) {
		return append(b, names[bit]...)
	}
	b = append(b, '[')
	b = strconv.AppendUint(b, 1<<bit, 16)
	return append(b, ']')
}

// appendFlags writes an exact value: "syn|ack", or 0.
func appendFlags(b []byte, names []string, v uint64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	for first := true; v != 0; v &= v - 1 {
		if !first {
			b = append(b, '|')
		}
		first = false
		b = appendFlag(b, names, bits.TrailingZeros64(v))
	}
	return b
}

// appendFlagsMasked writes a sign and a name for each bit of mask: "+syn-ack".
func appendFlagsMasked(b []byte, names []string, v, mask uint64) []byte {
	for ; mask != 0; mask &= mask - 1 {
		bit := bits.TrailingZeros64(mask)
		sign := byte('-')
		if v>>bit&1 == 1 {
			sign = '+'
		}
		b = appendFlag(append(b, sign), names, bit)
	}
	return b
}

// appendValue writes the exact value of a field as in set_field and learn.
func (v FieldValue) appendValue(b []byte) []byte {
	switch f := fields[v.Field].format; f {
	case fmtDec, fmtFrag:
		if v.Field == FieldCTZone { // decimal in a match only
			return appendHex(b, v.value.lo)
		}
		return appendDec(b, v.value.lo)
	case fmtMAC:
		return v.MAC().appendText(b)
	case fmtIPv4, fmtIPv6:
		return v.Addr().AppendTo(b)
	case fmtPort:
		if v.Field == FieldInPort16 {
			return appendPort16(b, uint16(v.value.lo))
		}
		return appendPort(b, uint32(v.value.lo))
	case fmtCTState, fmtTCPFlags, fmtTunFlags:
		names, _ := flagsOf(f)
		return appendFlags(b, names, v.value.lo)
	}
	return appendHexWord(b, v.value)
}

// maskLen returns the length of a mask that is ones followed by zeros, in a field of
// n bits; -1 for any other mask.
func maskLen(mask word, n int) int {
	inv := mask.not().and(ones(n))
	k := 0
	for k < n && inv.bit(k) {
		k++
	}
	if ones(k) != inv {
		return -1
	}
	return n - k
}

// appendMasked writes the value and mask of a field as in a match.
func (v FieldValue) appendMasked(b []byte) []byte {
	info := &fields[v.Field]
	exact := v.Exact()
	switch info.format {
	case fmtMAC:
		b = v.MAC().appendText(b)
		if !exact {
			m := FieldValue{Field: v.Field, value: v.mask}
			b = m.MAC().appendText(append(b, '/'))
		}
		return b
	case fmtIPv4, fmtIPv6:
		b = v.Addr().AppendTo(b)
		if exact {
			return b
		}
		b = append(b, '/')
		if n := maskLen(v.mask, int(info.bits)); n >= 0 {
			return appendDec(b, uint64(n))
		}
		return FieldValue{Field: v.Field, value: v.mask}.Addr().AppendTo(b)
	case fmtCTState, fmtTCPFlags, fmtTunFlags:
		names, all := flagsOf(info.format)
		// The switch shows the one known tunnel flag with a sign even when exact.
		if v.mask.lo&all == all && v.Field != FieldTunFlags {
			return appendFlags(b, names, v.value.lo)
		}
		return appendFlagsMasked(b, names, v.value.lo, v.mask.lo&all)
	case fmtFrag:
		if n, ok := fragNames[[2]uint64{v.value.lo, v.mask.lo}]; ok {
			return append(b, n...)
		}
	case fmtPort:
		if exact {
			return appendPort(b, uint32(v.value.lo))
		}
	case fmtDec:
		if exact {
			return appendDec(b, v.value.lo)
		}
		b = appendHexPad(b, v.value.lo, 1)
		return appendHexPad(append(b, '/'), v.mask.lo, 1)
	}
	switch v.Field {
	case FieldIPv6Label:
		b = appendHexPad(b, v.value.lo, 5)
		if !exact {
			b = appendHexPad(append(b, '/'), v.mask.lo, 5)
		}
		return b
	case FieldEthType:
		if exact {
			return appendHexPad(b, v.value.lo, 4)
		}
	}
	b = appendHexWord(b, v.value)
	if !exact {
		b = appendHexWord(append(b, '/'), v.mask)
	}
	return b
}

// appendText writes the subfield: "NXM_NX_REG3[0..15]".
func (s Subfield) appendText(b []byte) []byte {
	if !s.Field.valid() {
		return append(b, "none[]"...)
	}
	b = append(b, fields[s.Field].nxm...)
	b = append(b, '[')
	if s.Offset != 0 || int(s.N) != s.Field.Bits() {
		b = appendDec(b, uint64(s.Offset))
		if s.N != 1 {
			b = append(b, ".."...)
			b = appendDec(b, uint64(s.Offset)+uint64(s.N)-1)
		}
	}
	return append(b, ']')
}

// String returns the form "NXM_NX_REG3[0..15]".
func (s Subfield) String() string { return string(s.appendText(nil)) }

// ipv6Bracket writes an address, an IPv6 one in brackets when a port follows.
func ipv6Bracket(b []byte, a netip.Addr, port bool) []byte {
	if !a.Is6() || !port {
		return a.AppendTo(b)
	}
	b = a.AppendTo(append(b, '['))
	return append(b, ']')
}
