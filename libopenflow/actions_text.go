package libopenflow

import (
	"encoding/binary"
	"encoding/hex"
)

// String returns the instructions in the syntax of ovs-ofctl, without "actions=";
// "drop" for an empty list.
func (i Instructions) String() string { return string(i.appendText(nil)) }

func (i Instructions) appendText(b []byte) []byte {
	at := len(b)
	for s := string(i); s != ""; {
		typ, one, rest, ok := cutTLV(s)
		if !ok {
			break
		}
		if len(b) > at {
			b = append(b, ',')
		}
		b = appendInstruction(b, typ, one)
		s = rest
	}
	if len(b) == at {
		return append(b, "drop"...)
	}
	return b
}

func appendInstruction(b []byte, typ uint16, one string) []byte {
	r := &reader{b: []byte(one[4:])}
	switch typ {
	case instrGoto:
		return appendDec(append(b, "goto_table:"...), uint64(r.u8()))
	case instrWriteMetadata:
		r.skip(4)
		v, mask := r.u64(), r.u64()
		b = appendHex(append(b, "write_metadata:"...), v)
		if mask != ^uint64(0) {
			b = appendHex(append(b, '/'), mask)
		}
		return b
	case instrWriteActions:
		b = Actions(one[8:]).appendText(append(b, "write_actions("...))
		return append(b, ')')
	case instrApplyActions:
		return Actions(one[8:]).appendText(b)
	case instrClearActions:
		return append(b, "clear_actions"...)
	case instrMeter:
		return appendDec(append(b, "meter:"...), uint64(r.u32()))
	}
	b = append(b, "instruction("...)
	return append(hex.AppendEncode(b, []byte(one)), ')')
}

// String returns the actions in the syntax of ovs-ofctl; "drop" for an empty list.
func (a Actions) String() string { return string(a.appendText(nil)) }

func (a Actions) appendText(b []byte) []byte {
	if a == "" {
		return append(b, "drop"...)
	}
	return appendActionList(b, []byte(a))
}

func appendActionList(b, list []byte) []byte {
	first := true
	for len(list) >= 8 {
		n := int(binary.BigEndian.Uint16(list[2:]))
		if n < 8 || n > len(list) {
			break
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendAction(b, list[:n])
		list = list[n:]
	}
	return b
}

// appendAction writes one action. What it cannot read is written as bytes.
func appendAction(b, one []byte) []byte {
	r := &reader{b: one[4:]}
	out := appendStandard(b, binary.BigEndian.Uint16(one), r)
	if out == nil || r.err != nil {
		b = append(b, "unknown("...)
		return append(hex.AppendEncode(b, one), ')')
	}
	return out
}

// appendStandard writes an action of the standard; nil if it is not one.
func appendStandard(b []byte, typ uint16, r *reader) []byte {
	switch typ {
	case actOutput:
		return appendOutput(b, r.u32(), r.u16())
	case actSetMPLSTTL:
		return append(appendDec(append(b, "set_mpls_ttl("...), uint64(r.u8())), ')')
	case actDecMPLSTTL:
		return append(b, "dec_mpls_ttl"...)
	case actPushVLAN:
		return appendHexPad(append(b, "push_vlan:"...), uint64(r.u16()), 4)
	case actPopVLAN:
		return append(b, "pop_vlan"...)
	case actPushMPLS:
		return appendHexPad(append(b, "push_mpls:"...), uint64(r.u16()), 4)
	case actPopMPLS:
		return appendHexPad(append(b, "pop_mpls:"...), uint64(r.u16()), 4)
	case actSetQueue:
		return appendDec(append(b, "set_queue:"...), uint64(r.u32()))
	case actGroup:
		return appendDec(append(b, "group:"...), uint64(r.u32()))
	case actSetNwTTL:
		return appendDec(append(b, "mod_nw_ttl:"...), uint64(r.u8()))
	case actDecNwTTL:
		return append(b, "dec_ttl"...)
	case actSetField:
		return appendSetField(b, r)
	case actExperimenter:
		if r.u32() != nxVendor {
			return nil
		}
		return appendNicira(b, r.u16(), r)
	}
	return nil
}

func appendOutput(b []byte, port uint32, maxLen uint16) []byte {
	switch {
	case port == PortController:
		return appendDec(append(b, "CONTROLLER:"...), uint64(maxLen))
	case port < PortMax:
		b = append(b, "output:"...)
	}
	return appendPort(b, port)
}

func appendSetField(b []byte, r *reader) []byte {
	o, _, ok := cutOXM(string(r.b))
	v, known := o.value()
	if !ok || !known || o.head&hasMask != 0 {
		return nil
	}
	b = v.appendValue(append(b, "set_field:"...))
	return append(append(b, "->"...), fields[v.Field].name...)
}

// subOfsNBits reads a 16-bit offset and size followed by a field header.
func (r *reader) subOfsNBits() Subfield {
	x := r.u16()
	return r.subfield(x>>6, x&0x3f+1)
}

// subfield reads a field header for bits that are known already.
func (r *reader) subfield(ofs, n uint16) Subfield {
	h := r.u32()
	s := Subfield{fieldOfSub(h), ofs, n}
	if r.err == nil && !s.ok() {
		r.fail(malformed("bits %d+%d of field %#x", ofs, n, h))
	}
	return s
}
