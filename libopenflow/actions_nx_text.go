package libopenflow

import (
	"encoding/hex"
)

// appendNicira writes a Nicira action; nil if it is of another kind than those of
// this package.
func appendNicira(b []byte, subtype uint16, r *reader) []byte {
	switch subtype {
	case nxResubmit, nxResubmitTable, nxResubmitCT:
		return appendResubmit(b, r, subtype)
	case nxPopQueue:
		return append(b, "pop_queue"...)
	case nxRegMove:
		n, so, do := r.u16(), r.u16(), r.u16()
		b = r.subfield(so, n).appendText(append(b, "move:"...))
		return r.subfield(do, n).appendText(append(b, "->"...))
	case nxRegLoad:
		dst, v := r.subOfsNBits(), r.u64()
		b = appendHex(append(b, "load:"...), v)
		return dst.appendText(append(b, "->"...))
	case nxMultipath:
		return appendMultipath(b, r)
	case nxBundle, nxBundleLoad:
		return appendBundle(b, r, subtype == nxBundleLoad)
	case nxOutputReg:
		return r.subOfsNBits().appendText(append(b, "output:"...))
	case nxLearn:
		return appendLearn(b, r)
	case nxExit:
		return append(b, "exit"...)
	case nxDecTTL:
		return append(b, "dec_ttl"...)
	case nxController:
		c := controllerAction{maxLen: r.u16(), id: r.u16(), reason: PacketInReason(r.u8())}
		return appendController(b, c)
	case nxController2:
		return appendController(b, r.controller2())
	case nxConjunction:
		clause, n := r.u8(), r.u8()
		b = append(appendDec(append(b, "conjunction("...), uint64(r.u32())), ',')
		b = append(appendDec(b, uint64(clause)+1), '/')
		return append(appendDec(b, uint64(n)), ')')
	case nxCT:
		return appendCT(b, r)
	case nxNAT:
		return appendNAT(b, r)
	case nxOutputTrunc:
		b = appendPort16(append(b, "output(port="...), r.u16())
		return append(appendDec(append(b, ",max_len="...), uint64(r.u32())), ')')
	case nxClone:
		r.skip(6)
		return append(appendActionList(append(b, "clone("...), r.b), ')')
	case nxCTClear:
		return append(b, "ct_clear"...)
	case nxCheckPktLarger:
		n, ofs := r.u16(), r.u16()
		b = append(appendDec(append(b, "check_pkt_larger("...), uint64(n)), ")->"...)
		return r.subfield(ofs, 1).appendText(b)
	}
	return nil
}

func appendResubmit(b []byte, r *reader, subtype uint16) []byte {
	port, table := r.u16(), uint8(0xff)
	if subtype != nxResubmit {
		table = r.u8()
	}
	if port != resubmitInPort && table == 0xff && subtype != nxResubmitCT {
		return appendPort16(append(b, "resubmit:"...), port)
	}
	b = append(b, "resubmit("...)
	if port != resubmitInPort {
		b = appendPort16(b, port)
	}
	b = append(b, ',')
	if table != 0xff {
		b = appendDec(b, uint64(table))
	}
	if subtype == nxResubmitCT {
		b = append(b, ",ct"...)
	}
	return append(b, ')')
}

func appendName(b []byte, names []string, i uint16) []byte {
	if int(i) < len(names) {
		return append(b, names[i]...)
	}
	return appendDec(b, uint64(i))
}

func appendMultipath(b []byte, r *reader) []byte {
	fields, basis := r.u16(), r.u16()
	r.skip(2)
	alg, links, arg := r.u16(), r.u16(), r.u32()
	r.skip(2)
	b = append(appendName(append(b, "multipath("...), hashNames, fields), ',')
	b = append(appendDec(b, uint64(basis)), ',')
	b = append(appendName(b, algNames, alg), ',')
	b = append(appendDec(b, uint64(links)+1), ',')
	b = append(appendDec(b, uint64(arg)), ',')
	return append(r.subOfsNBits().appendText(b), ')')
}

func appendBundle(b []byte, r *reader, load bool) []byte {
	alg, fields, basis := r.u16(), r.u16(), r.u16()
	r.skip(4)
	n, ofs := r.u16(), r.u16()
	dst := Subfield{}
	if load {
		dst = r.subfield(ofs>>6, ofs&0x3f+1)
	} else {
		r.skip(4)
	}
	r.skip(4)
	b = append(b, "bundle"...)
	if load {
		b = append(b, "_load"...)
	}
	b = append(appendName(append(b, '('), hashNames, fields), ',')
	b = append(appendDec(b, uint64(basis)), ',')
	b = append(appendName(b, bundleNames, alg), ",ofport,"...)
	if load {
		b = append(dst.appendText(b), ',')
	}
	b = append(b, "members:"...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendPort16(b, r.u16())
	}
	return append(b, ')')
}

// controller2 reads the properties of a controller2 action.
func (r *reader) controller2() controllerAction {
	c := controllerAction{maxLen: MaxLenFull, reason: ReasonAction}
	r.skip(6)
	for r.more() {
		typ, p := r.property()
		switch typ {
		case c2MaxLen:
			c.maxLen = p.u16()
		case c2ID:
			c.id = p.u16()
		case c2Reason:
			c.reason = PacketInReason(p.u8())
		case c2Userdata:
			c.userdata = string(p.b)
		case c2Pause:
			c.pause = true
		case c2Meter:
			c.meter = p.u32()
		}
		r.fail(p.err)
	}
	return c
}

func appendController(b []byte, c controllerAction) []byte {
	b = append(b, "controller("...)
	at := len(b)
	if c.reason != ReasonAction {
		b = append(append(append(b, "reason="...), c.reason.String()...), ',')
	}
	if c.maxLen != MaxLenFull {
		b = append(appendDec(append(b, "max_len="...), uint64(c.maxLen)), ',')
	}
	if c.id != 0 {
		b = append(appendDec(append(b, "id="...), uint64(c.id)), ',')
	}
	if c.userdata != "" {
		b = append(b, "userdata="...)
		for i := range len(c.userdata) {
			if i > 0 {
				b = append(b, '.')
			}
			b = hex.AppendEncode(b, []byte{c.userdata[i]})
		}
		b = append(b, ',')
	}
	if c.pause {
		b = append(b, "pause,"...)
	}
	if c.meter != 0 {
		b = append(appendDec(append(b, "meter_id="...), uint64(c.meter)), ',')
	}
	if len(b) > at {
		b = b[:len(b)-1]
	}
	return append(b, ')')
}
