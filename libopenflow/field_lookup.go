package libopenflow

import "encoding/binary"

// fieldIndex finds a field by the header of its TLV.
type fieldIndex struct {
	nxm0, nxm1, basic, pktReg [128]Field
}

var index = makeIndex()

func makeIndex() *fieldIndex {
	x := new(fieldIndex)
	for f := Field(1); f < numFields; f++ {
		for _, h := range [2]uint32{fields[f].oxm, fields[f].sub} {
			if t := x.class(h >> 16); t != nil {
				t[h>>9&0x7f] = f
			}
		}
	}
	x.basic[42] = FieldTCPFlags // the OpenFlow 1.5 spelling, accepted on 1.3 too
	return x
}

func (x *fieldIndex) class(c uint32) *[128]Field {
	switch c {
	case classNXM0:
		return &x.nxm0
	case classNXM1:
		return &x.nxm1
	case classBasic:
		return &x.basic
	case classPktReg:
		return &x.pktReg
	}
	return nil
}

// fieldOf finds the field of an OXM or NXM header; payload follows the header and
// is needed for experimenter fields only.
func fieldOf(h uint32, payload string) Field {
	f := FieldNone
	number := h >> 9 & 0x7f
	switch c := h >> 16; c {
	case classExp:
		if len(payload) < 4 || binary.BigEndian.Uint32([]byte(payload[:4])) != onfExperimenter {
			return FieldNone
		}
		switch number {
		case 42:
			f = FieldTCPFlags
		case 43:
			f = FieldActsetOutput
		}
	case classNDExt:
		switch number {
		case 1:
			f = FieldNDReserved
		case 2:
			f = FieldNDOptionsType
		}
	default:
		if t := index.class(c); t != nil {
			f = t[number]
		}
	}
	if f == FieldNone {
		return FieldNone
	}
	// The payload must have the field's size, or it is some other field.
	n := fields[f].bytes()
	if h&hasMask != 0 {
		n *= 2
	}
	if h>>16 == classExp {
		n += 4
	}
	if int(h&0xff) != n {
		return FieldNone
	}
	return f
}

// fieldOfSub finds the field of a header that stands alone, as in move and load.
func fieldOfSub(h uint32) Field {
	for f := Field(1); f < numFields; f++ {
		if fields[f].sub == h || fields[f].oxm == h {
			return f
		}
	}
	return FieldNone
}
