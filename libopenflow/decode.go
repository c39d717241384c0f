package libopenflow

import "encoding/binary"

// matchOXM is the only type of ofp_match in use (OpenFlow 1.3 §7.2.3.1).
const matchOXM = 1

// append writes the match as an ofp_match, padded.
func (m Match) append(b []byte) []byte {
	at := len(b)
	b = actionHeader(b, matchOXM, uint16(4+len(m)))
	b = append(b, m...)
	return pad8(b, at)
}

// match reads an ofp_match with its padding and brings it into canonical form.
func (r *reader) match() Match {
	typ, n := r.u16(), int(r.u16())
	p := r.take(n - 4)
	r.skip((n+7)/8*8 - n)
	if r.err == nil && typ != matchOXM {
		r.fail(malformed("match of type %d", typ))
	}
	m, err := decodeMatch(p)
	r.fail(err)
	if r.err != nil {
		return ""
	}
	return m
}

// decodeMatch brings a list of TLVs into canonical form. The switch's own lists are
// canonical already and cost one allocation.
func decodeMatch(p []byte) (Match, error) {
	s := string(p)
	last, canonical := FieldNone, true
	unknown := false
	for t := s; t != ""; {
		o, rest, ok := cutOXM(t)
		if !ok {
			return "", malformed("match field cut off after %d of %d bytes", len(s)-len(t), len(s))
		}
		switch {
		case o.field == FieldNone:
			unknown = true
		case unknown || o.field <= last || !o.canonical():
			canonical = false
		default:
			last = o.field
		}
		t = rest
	}
	if canonical {
		return Match(s), nil
	}
	var m Match
	for o := range Match(s).tlvs() {
		if v, ok := o.value(); ok {
			m = m.With(v)
		} else {
			m += Match(o.raw)
		}
	}
	return m, nil
}

// canonical reports whether the TLV is as appendOXM would write it.
func (o oxm) canonical() bool {
	v, ok := o.value()
	v = v.cut()
	if !ok || !o.field.matchable() || v.mask.zero() {
		return false
	}
	var buf [40]byte
	return string(v.appendOXM(buf[:0])) == o.raw
}

// decodeActions checks that a list of actions is well formed, nested lists included,
// and copies it.
func decodeActions(p []byte) (Actions, error) {
	if err := checkActions(p, maxNesting); err != nil {
		return "", err
	}
	return Actions(p), nil
}

// maxNesting bounds how deep ct and clone may contain actions.
const maxNesting = 8

func checkActions(p []byte, depth int) error {
	if depth == 0 {
		return malformed("actions nested more than %d deep", maxNesting)
	}
	for at := 0; at < len(p); {
		rest := p[at:]
		if len(rest) < 8 {
			return malformed("action cut off: %d bytes left", len(rest))
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < 8 || n%8 != 0 || n > len(rest) {
			return malformed("action of type %d with length %d, %d bytes left", binary.BigEndian.Uint16(rest), n, len(rest))
		}
		if sub := nested(rest[:n]); sub != nil {
			if err := checkActions(sub, depth-1); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

// nested returns the actions inside one action, nil for an action without any.
func nested(a []byte) []byte {
	if len(a) < 16 || binary.BigEndian.Uint16(a) != actExperimenter || binary.BigEndian.Uint32(a[4:]) != nxVendor {
		return nil
	}
	switch binary.BigEndian.Uint16(a[8:]) {
	case nxCT:
		if len(a) > 24 {
			return a[24:]
		}
	case nxClone:
		return a[16:]
	}
	return nil
}

// instructions reads the rest as a list of instructions and puts it in order.
func (r *reader) instructions() Instructions {
	p := r.take(len(r.b))
	rank, ordered := -1, true
	for s := p; len(s) > 0; {
		if len(s) < 8 {
			r.fail(malformed("instruction cut off: %d bytes left", len(s)))
			return ""
		}
		typ, n := binary.BigEndian.Uint16(s), int(binary.BigEndian.Uint16(s[2:]))
		if n < 8 || n%8 != 0 || n > len(s) || typ == instrWriteMetadata && n != 24 {
			r.fail(malformed("instruction of type %d with length %d, %d bytes left", typ, n, len(s)))
			return ""
		}
		if typ == instrApplyActions || typ == instrWriteActions {
			r.fail(checkActions(s[8:n], maxNesting))
			if r.err != nil {
				return ""
			}
		}
		if k := instrRank(typ); k < rank || k == rank && k != instrRankUnknown {
			ordered = false
		} else {
			rank = k
		}
		s = s[n:]
	}
	if ordered {
		return Instructions(p)
	}
	var i Instructions
	for s := string(p); s != ""; {
		typ, one, rest, _ := cutTLV(s)
		if instrRank(typ) == instrRankUnknown {
			i += Instructions(one)
		} else {
			i = i.put(typ, []byte(one))
		}
		s = rest
	}
	return i
}
