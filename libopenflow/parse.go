package libopenflow

import (
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// splitTop splits s at the separators that stand outside of parentheses and brackets.
// Empty pieces are left out.
func splitTop(s, seps string) ([]string, error) {
	var out []string
	depth, at := 0, 0
	piece := func(end int) {
		if p := strings.TrimSpace(s[at:end]); p != "" {
			out = append(out, p)
		}
		at = end + 1
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("%q: closing %q without an opening one", s, c)
			}
		case depth == 0 && strings.IndexByte(seps, c) >= 0:
			piece(i)
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("%q: a parenthesis is not closed", s)
	}
	piece(len(s))
	return out, nil
}

// parseUint reads a decimal or 0x number below 2^n.
func parseUint(s string, n int) (uint64, error) {
	v, err := strconv.ParseUint(s, 0, n)
	if err != nil {
		return 0, fmt.Errorf("%q: expected a number of %d bits", s, n)
	}
	return v, nil
}

// parseWord reads a number of up to n ≤ 128 bits.
func parseWord(s string, n int) (word, error) {
	digits, isHex := strings.CutPrefix(s, "0x")
	if !isHex {
		v, err := parseUint(s, min(n, 64))
		return word{lo: v}, err
	}
	if digits == "" || len(digits) > 32 {
		return word{}, fmt.Errorf("%q: expected a number of %d bits", s, n)
	}
	var w word
	var err error
	if cut := len(digits) - 16; cut > 0 {
		w.hi, err = strconv.ParseUint(digits[:cut], 16, 64)
		digits = digits[cut:]
	}
	if err == nil {
		w.lo, err = strconv.ParseUint(digits, 16, 64)
	}
	if err != nil || w.and(ones(n)) != w {
		return word{}, fmt.Errorf("%q: expected a number of %d bits", s, n)
	}
	return w, nil
}

// parsePort reads a port number or the name of a reserved port. The 16-bit numbers
// of OpenFlow 1.0's reserved ports stand for the 32-bit ones.
func parsePort(s string) (uint32, error) {
	for p, n := range portNames {
		if strings.EqualFold(s, n) {
			return p, nil
		}
	}
	if strings.EqualFold(s, "NONE") {
		return PortAny, nil
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("%q: expected a port number or name", s)
	}
	if v >= 0xff00 && v <= 0xffff {
		v |= 0xffff0000
	}
	return uint32(v), nil
}

// parsePort16 is parsePort for a 16-bit port number.
func parsePort16(s string) (uint16, error) {
	p, err := parsePort(s)
	if err == nil && p > 0xffff && p < PortMax {
		err = fmt.Errorf("%q: expected a port number of 16 bits", s)
	}
	return uint16(p), err
}

// parseOne reads one value of field f.
func parseOne(f Field, s string) (word, error) {
	n := f.Bits()
	switch format := fields[f].format; format {
	case fmtMAC:
		m, err := ParseMAC(s)
		return wordOf(m[:]), err
	case fmtIPv4, fmtIPv6:
		a, err := netip.ParseAddr(s)
		if err != nil || a.BitLen() != n || a.Zone() != "" {
			return word{}, fmt.Errorf("%q: expected an address of %d bits", s, n)
		}
		return wordOf(a.AsSlice()), nil
	case fmtPort:
		if f == FieldInPort16 {
			p, err := parsePort16(s)
			return word{lo: uint64(p)}, err
		}
		p, err := parsePort(s)
		return word{lo: uint64(p)}, err
	case fmtCTState, fmtTCPFlags, fmtTunFlags:
		if names, all := flagsOf(format); !isDigit(s) {
			v, err := parseFlags(names, all, s)
			return word{lo: v}, err
		}
	}
	return parseWord(s, n)
}

func isDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// parseFlagName reads one name or "[bit]".
func parseFlagName(names []string, all uint64, s string) (uint64, error) {
	for i, n := range names {
		if s == n {
			return 1 << i, nil
		}
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		v, err := strconv.ParseUint(s[1:len(s)-1], 16, 64)
		if err == nil && v&all == v && bits.OnesCount64(v) == 1 {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%q: expected one of %s", s, strings.Join(names, ", "))
}

// parseFlags reads "a|b".
func parseFlags(names []string, all uint64, s string) (v uint64, err error) {
	for p := range strings.SplitSeq(s, "|") {
		bit, err := parseFlagName(names, all, p)
		if err != nil {
			return 0, err
		}
		v |= bit
	}
	return v, nil
}

// parseSignedFlags reads "+a-b".
func parseSignedFlags(names []string, all uint64, s string) (v, mask uint64, err error) {
	for s != "" {
		sign := s[0]
		if sign != '+' && sign != '-' {
			return 0, 0, fmt.Errorf("%q: expected + or - before each flag", s)
		}
		end := strings.IndexAny(s[1:], "+-")
		if end < 0 {
			end = len(s) - 1
		}
		bit, err := parseFlagName(names, all, s[1:1+end])
		if err != nil {
			return 0, 0, err
		}
		mask |= bit
		if sign == '+' {
			v |= bit
		}
		s = s[1+end:]
	}
	return v, mask, nil
}

// parseField reads the value and mask of field f as in a match.
func parseField(f Field, s string) (FieldValue, error) {
	format := fields[f].format
	if names, all := flagsOf(format); names != nil && (strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-")) {
		v, mask, err := parseSignedFlags(names, all, s)
		return f.IsMasked(v, mask), err
	}
	if format == fmtFrag {
		for k, n := range fragNames {
			if s == n {
				return f.IsMasked(k[0], k[1]), nil
			}
		}
	}
	value, mask, masked := strings.Cut(s, "/")
	v, err := parseOne(f, value)
	if err != nil {
		return FieldValue{}, err
	}
	if !masked {
		return f.masked(v, ones(128)), nil
	}
	if n, err := strconv.ParseUint(mask, 10, 8); err == nil && (format == fmtIPv4 || format == fmtIPv6) && int(n) <= f.Bits() {
		return f.masked(v, ones(f.Bits()).and(ones(f.Bits()-int(n)).not())), nil
	}
	m, err := parseOne(f, mask)
	if err != nil {
		return FieldValue{}, err
	}
	return f.masked(v, m), nil
}

// parseSubfield reads "NXM_NX_REG3[0..15]", "reg3[4]" or "reg3[]".
func parseSubfield(s string) (Subfield, error) {
	name, rest, ok := strings.Cut(s, "[")
	f := fieldNames.sub[name]
	if f == FieldNone {
		return Subfield{}, fmt.Errorf("%q: unknown field %q", s, name)
	}
	if !ok || rest == "]" {
		return f.All(), nil
	}
	rest, ok = strings.CutSuffix(rest, "]")
	if !ok {
		return Subfield{}, fmt.Errorf("%q: expected ] at the end", s)
	}
	from, to, isRange := strings.Cut(rest, "..")
	if !isRange {
		to = from
	}
	a, err1 := strconv.ParseUint(from, 10, 8)
	z, err2 := strconv.ParseUint(to, 10, 8)
	sub := f.Range(int(a), int(z))
	if err1 != nil || err2 != nil || !sub.ok() {
		return Subfield{}, fmt.Errorf("%q: expected bits of 0..%d", s, f.Bits()-1)
	}
	return sub, nil
}
