package libopenflow

import "encoding/binary"

// Actions is a list of actions as on the wire (OpenFlow 1.3 §7.2.5 and the Nicira
// extensions), in the form in which Open vSwitch reports it, so that lists compare
// as Go values. It is immutable: every method returns a longer list.
//
//	of.NewActions().SetReg(1, 7).DecTTL().Output(3)
type Actions string

// NewActions returns the empty list, which drops the packet.
func NewActions() Actions { return "" }

// Types of standard actions.
const (
	actOutput       = 0
	actSetMPLSTTL   = 15
	actDecMPLSTTL   = 16
	actPushVLAN     = 17
	actPopVLAN      = 18
	actPushMPLS     = 19
	actPopMPLS      = 20
	actSetQueue     = 21
	actGroup        = 22
	actSetNwTTL     = 23
	actDecNwTTL     = 24
	actSetField     = 25
	actExperimenter = 0xffff
)

// Subtypes of Nicira actions.
const (
	nxResubmit       = 1
	nxPopQueue       = 5
	nxRegMove        = 6
	nxRegLoad        = 7
	nxMultipath      = 10
	nxBundle         = 12
	nxBundleLoad     = 13
	nxResubmitTable  = 14
	nxOutputReg      = 15
	nxLearn          = 16
	nxExit           = 17
	nxDecTTL         = 18
	nxController     = 20
	nxConjunction    = 34
	nxCT             = 35
	nxNAT            = 36
	nxController2    = 37
	nxOutputTrunc    = 39
	nxClone          = 42
	nxCTClear        = 43
	nxResubmitCT     = 44
	nxCheckPktLarger = 49
)

const nxVendor = 0x00002320

// actionHeader starts a standard action of n bytes.
func actionHeader(b []byte, typ, n uint16) []byte {
	b = binary.BigEndian.AppendUint16(b, typ)
	return binary.BigEndian.AppendUint16(b, n)
}

// nxHeader starts a Nicira action of n bytes.
func nxHeader(b []byte, subtype, n uint16) []byte {
	b = actionHeader(b, actExperimenter, n)
	b = binary.BigEndian.AppendUint32(b, nxVendor)
	return binary.BigEndian.AppendUint16(b, subtype)
}

// pad8 appends zeros up to a multiple of 8 bytes counted from offset start.
func pad8(b []byte, start int) []byte {
	for (len(b)-start)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// refused is an action that every switch refuses; it stands for one that was made
// from an invalid field, so that a mistake shows instead of changing the meaning.
const refused Actions = "\xff\xff\x00\x10\x00\x00\x23\x20\xff\xff\x00\x00\x00\x00\x00\x00"

// Output sends the packet to a port. To PortController it carries the whole packet.
func (a Actions) Output(port uint32) Actions {
	if port == PortController {
		return a.OutputController(MaxLenFull)
	}
	return a.output(port, 0)
}

// OutputInPort sends the packet back to where it came from.
func (a Actions) OutputInPort() Actions { return a.output(PortInPort, 0) }

// Normal hands the packet to the switch's own learning pipeline.
func (a Actions) Normal() Actions { return a.output(PortNormal, 0) }

// OutputController sends up to maxLen bytes of the packet to the controller.
func (a Actions) OutputController(maxLen uint16) Actions { return a.output(PortController, maxLen) }

func (a Actions) output(port uint32, maxLen uint16) Actions {
	var buf [16]byte
	b := actionHeader(buf[:0], actOutput, 16)
	b = binary.BigEndian.AppendUint32(b, port)
	b = binary.BigEndian.AppendUint16(b, maxLen)
	return a + Actions(append(b, make([]byte, 6)...))
}

// OutputReg sends the packet to the port whose number is in src.
func (a Actions) OutputReg(src Subfield) Actions {
	if !src.ok() {
		return a + refused
	}
	var buf [24]byte
	b := nxHeader(buf[:0], nxOutputReg, 24)
	b = binary.BigEndian.AppendUint16(b, src.ofsNBits())
	b = binary.BigEndian.AppendUint32(b, fields[src.Field].sub)
	b = binary.BigEndian.AppendUint16(b, MaxLenFull)
	return a + Actions(append(b, make([]byte, 6)...))
}

// Group hands the packet to a group.
func (a Actions) Group(id uint32) Actions {
	var buf [8]byte
	return a + Actions(binary.BigEndian.AppendUint32(actionHeader(buf[:0], actGroup, 8), id))
}

// SetQueue chooses the egress queue.
func (a Actions) SetQueue(id uint32) Actions {
	var buf [8]byte
	return a + Actions(binary.BigEndian.AppendUint32(actionHeader(buf[:0], actSetQueue, 8), id))
}

// PushVLAN pushes an 802.1Q tag with VLAN id 0.
func (a Actions) PushVLAN() Actions { return a + "\x00\x11\x00\x08\x81\x00\x00\x00" }

// PopVLAN removes the outer tag. In OpenFlow 1.3 the flow must match a tag first.
func (a Actions) PopVLAN() Actions { return a + "\x00\x12\x00\x08\x00\x00\x00\x00" }

// SetVLAN writes VLAN id vid, 0…4095, into the outer tag.
func (a Actions) SetVLAN(vid uint16) Actions {
	return a.SetField(FieldVLANVID.Is(uint64(vid&0xfff) | vlanPresent))
}

// DecTTL decrements the IP TTL or hop limit; a packet whose TTL runs out goes to the
// controller, if it listens, and nowhere else.
func (a Actions) DecTTL() Actions { return a + "\x00\x18\x00\x08\x00\x00\x00\x00" }

// SetField writes a value into a field. When only some bits have a value, the list
// gets one load action for each run of them, which is what the switch makes of it.
func (a Actions) SetField(v FieldValue) Actions {
	if !v.Field.valid() || fields[v.Field].oxm == 0 || v.Field == FieldInPort16 || v.Field == FieldVLANTCI {
		return a + refused
	}
	if !v.Exact() {
		return a.loadMasked(v)
	}
	info := &fields[v.Field]
	var buf [32]byte
	n := oxmHeaderLen + info.bytes()
	if info.oxm>>16 == classExp {
		n += 4
	}
	total := (4 + n + 7) / 8 * 8
	b := actionHeader(buf[:0], actSetField, uint16(total))
	b = binary.BigEndian.AppendUint32(b, info.oxm)
	if info.oxm>>16 == classExp {
		b = binary.BigEndian.AppendUint32(b, onfExperimenter)
	}
	b = appendWord(b, v.value, info.bytes())
	return a + Actions(pad8(b, 0))
}

// loadMasked appends one load for each run of mask bits, of at most 64 bits each.
func (a Actions) loadMasked(v FieldValue) Actions {
	bits := v.Field.Bits()
	for ofs := 0; ofs < bits; {
		if !v.mask.bit(ofs) {
			ofs++
			continue
		}
		n := 1
		for n < 64 && ofs+n < bits && v.mask.bit(ofs+n) {
			n++
		}
		a = a.Load(v.Field.Range(ofs, ofs+n-1), v.value.shr(ofs).and(ones(n)).lo)
		ofs += n
	}
	return a
}

// SetReg writes register n, 0…15.
func (a Actions) SetReg(n int, v uint32) Actions { return a.SetField(FieldReg(n).Is(uint64(v))) }

// SetEthSrc writes the Ethernet source address.
func (a Actions) SetEthSrc(m MAC) Actions { return a.SetField(FieldEthSrc.IsMAC(m)) }

// SetEthDst writes the Ethernet destination address.
func (a Actions) SetEthDst(m MAC) Actions { return a.SetField(FieldEthDst.IsMAC(m)) }

// SetTunID writes the tunnel key.
func (a Actions) SetTunID(id uint64) Actions { return a.SetField(FieldTunID.Is(id)) }

// Load writes the low bits of v into dst.
func (a Actions) Load(dst Subfield, v uint64) Actions {
	if !dst.ok() {
		return a + refused
	}
	var buf [24]byte
	b := nxHeader(buf[:0], nxRegLoad, 24)
	b = binary.BigEndian.AppendUint16(b, dst.ofsNBits())
	b = binary.BigEndian.AppendUint32(b, fields[dst.Field].sub)
	return a + Actions(binary.BigEndian.AppendUint64(b, v&ones(int(dst.N)).lo))
}

// Move copies src to dst; both have the same number of bits.
func (a Actions) Move(src, dst Subfield) Actions {
	if !src.ok() || !dst.ok() || src.N != dst.N {
		return a + refused
	}
	var buf [24]byte
	b := nxHeader(buf[:0], nxRegMove, 24)
	b = binary.BigEndian.AppendUint16(b, src.N)
	b = binary.BigEndian.AppendUint16(b, src.Offset)
	b = binary.BigEndian.AppendUint16(b, dst.Offset)
	b = binary.BigEndian.AppendUint32(b, fields[src.Field].sub)
	return a + Actions(binary.BigEndian.AppendUint32(b, fields[dst.Field].sub))
}

// MoveField copies the whole field src to dst of the same width.
func (a Actions) MoveField(src, dst Field) Actions { return a.Move(src.All(), dst.All()) }

// Resubmit looks the packet up in table as if it had just arrived, then goes on.
func (a Actions) Resubmit(table uint8) Actions { return a.ResubmitPort(resubmitInPort, table) }

// ResubmitPort is Resubmit with another ingress port, an OpenFlow 1.0 port number.
func (a Actions) ResubmitPort(inPort uint16, table uint8) Actions {
	return a.resubmit(nxResubmitTable, inPort, table)
}

func (a Actions) resubmit(subtype, inPort uint16, table uint8) Actions {
	var buf [16]byte
	b := nxHeader(buf[:0], subtype, 16)
	b = binary.BigEndian.AppendUint16(b, inPort)
	return a + Actions(append(b, table, 0, 0, 0))
}

// resubmitInPort is the 16-bit number of the packet's own ingress port.
const resubmitInPort = 0xfff8

// Conjunction says that the flow is alternative clause of the n clauses of
// conjunction id. Clause counts from 0; n is 2…64; id is not 0.
func (a Actions) Conjunction(id uint32, clause, n uint8) Actions {
	var buf [16]byte
	b := nxHeader(buf[:0], nxConjunction, 16)
	b = append(b, clause, n)
	return a + Actions(binary.BigEndian.AppendUint32(b, id))
}

// CTClear forgets the packet's connection-tracking state.
func (a Actions) CTClear() Actions {
	var buf [16]byte
	return a + Actions(append(nxHeader(buf[:0], nxCTClear, 16), make([]byte, 6)...))
}

// CheckPktLarger sets the one bit dst to whether the packet is larger than n bytes.
func (a Actions) CheckPktLarger(n uint16, dst Subfield) Actions {
	if !dst.ok() || dst.N != 1 {
		return a + refused
	}
	var buf [24]byte
	b := nxHeader(buf[:0], nxCheckPktLarger, 24)
	b = binary.BigEndian.AppendUint16(b, n)
	b = binary.BigEndian.AppendUint16(b, dst.Offset)
	b = binary.BigEndian.AppendUint32(b, fields[dst.Field].sub)
	return a + Actions(append(b, make([]byte, 24-len(b))...))
}

// ok reports whether the subfield can be encoded.
func (s Subfield) ok() bool {
	return s.Field.valid() && s.N > 0 && int(s.Offset)+int(s.N) <= s.Field.Bits() &&
		s.Offset < 1<<10
}
