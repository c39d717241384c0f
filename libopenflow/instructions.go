package libopenflow

import "encoding/binary"

// Instructions is the list of instructions of a flow as on the wire (OpenFlow 1.3
// §7.2.4), in the order in which Open vSwitch reports them: meter, apply, clear,
// write actions, write metadata, goto. It is immutable; each method returns a new
// list with the instruction in its place, replacing one of the same kind.
//
//	of.NewInstructions().Apply(of.NewActions().SetReg(1, 7)).Goto(5)
type Instructions string

// NewInstructions returns the empty list, which drops the packet.
func NewInstructions() Instructions { return "" }

// Types of instructions.
const (
	instrGoto          = 1
	instrWriteMetadata = 2
	instrWriteActions  = 3
	instrApplyActions  = 4
	instrClearActions  = 5
	instrMeter         = 6
)

const instrRankUnknown = 6

// instrRank gives the place of a type in the list; unknown types come last.
func instrRank(typ uint16) int {
	switch typ {
	case instrMeter:
		return 0
	case instrApplyActions:
		return 1
	case instrClearActions:
		return 2
	case instrWriteActions:
		return 3
	case instrWriteMetadata:
		return 4
	case instrGoto:
		return 5
	}
	return instrRankUnknown
}

// Apply runs actions on the packet now. An empty list adds no instruction.
func (i Instructions) Apply(a Actions) Instructions { return i.withActions(instrApplyActions, a) }

// WriteActions adds actions to the packet's action set, which runs after the last
// table. An empty list adds no instruction.
func (i Instructions) WriteActions(a Actions) Instructions {
	return i.withActions(instrWriteActions, a)
}

func (i Instructions) withActions(typ uint16, a Actions) Instructions {
	if a == "" {
		return i.put(typ, nil)
	}
	var buf [256]byte
	b := actionHeader(buf[:0], typ, uint16(8+len(a)))
	b = append(b, 0, 0, 0, 0)
	return i.put(typ, append(b, a...))
}

// ClearActions empties the packet's action set.
func (i Instructions) ClearActions() Instructions {
	return i.put(instrClearActions, []byte{0, instrClearActions, 0, 8, 0, 0, 0, 0})
}

// Meter sends the packet through a meter first.
func (i Instructions) Meter(id uint32) Instructions {
	var buf [8]byte
	return i.put(instrMeter, binary.BigEndian.AppendUint32(actionHeader(buf[:0], instrMeter, 8), id))
}

// WriteMetadata writes the bits of mask in the packet's metadata.
func (i Instructions) WriteMetadata(v, mask uint64) Instructions {
	var buf [24]byte
	b := actionHeader(buf[:0], instrWriteMetadata, 24)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, v&mask)
	return i.put(instrWriteMetadata, binary.BigEndian.AppendUint64(b, mask))
}

// Goto goes on in another table, whose number is higher than the flow's.
func (i Instructions) Goto(table uint8) Instructions {
	return i.put(instrGoto, []byte{0, instrGoto, 0, 8, table, 0, 0, 0})
}

// put places one encoded instruction; an empty one removes the kind.
func (i Instructions) put(typ uint16, enc []byte) Instructions {
	at, end := 0, 0
	for s := string(i); s != ""; {
		t, one, rest, ok := cutTLV(s)
		if !ok || instrRank(t) > instrRank(typ) {
			break
		}
		end = at + len(one)
		if t != typ {
			at = end
		}
		s = rest
	}
	var buf [256]byte
	b := append(buf[:0], i[:at]...)
	b = append(b, enc...)
	return Instructions(append(b, i[max(at, end):]...))
}

// cutTLV takes the first element with a 16-bit type and a 16-bit length off s. The
// length counts the header and must be a multiple of 8.
func cutTLV(s string) (typ uint16, one, rest string, ok bool) {
	if len(s) < 8 {
		return 0, "", "", false
	}
	typ = uint16(s[0])<<8 | uint16(s[1])
	n := int(s[2])<<8 | int(s[3])
	if n < 8 || n%8 != 0 || n > len(s) {
		return 0, "", "", false
	}
	return typ, s[:n], s[n:], true
}
