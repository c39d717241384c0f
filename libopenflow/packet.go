package libopenflow

import (
	"bytes"
	"encoding/binary"
)

// PacketInReason says why a packet came to the controller.
type PacketInReason uint8

// Reasons of packet-ins.
const (
	ReasonMiss   PacketInReason = 0 // a table-miss flow
	ReasonAction PacketInReason = 1 // an action of some flow
	ReasonTTL    PacketInReason = 2 // the TTL ran out
)

// String returns the name that ovs-ofctl uses.
func (r PacketInReason) String() string {
	names := [...]string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}
	if int(r) < len(names) {
		return names[r]
	}
	return "reason_" + utoa(uint64(r))
}

// PacketIn brings a packet to the controller (OpenFlow 1.3 §7.4.1; with
// PacketInFormat2 the Nicira message 30).
type PacketIn struct {
	Reason   PacketInReason
	Table    uint8
	Cookie   uint64 // of the flow that sent it; all ones when there is none
	TotalLen uint16 // length of the whole packet, of which Data may be a part
	Buffer   uint32
	Match    Match  // in_port, metadata, registers, tunnel fields as they were
	Userdata []byte // of the controller action; PacketInFormat2 only
	Data     []byte // the frame
	// Paused is what a Resume sends back, when the action has paused the packet.
	Paused []byte
}

// InPort returns the port the packet came in by; PortAny if the switch did not say.
func (m *PacketIn) InPort() uint32 {
	if v, ok := m.Match.Get(FieldInPort); ok {
		return uint32(v.Uint64())
	}
	return PortAny
}

// Type returns TypePacketIn.
func (*PacketIn) Type() MsgType { return TypePacketIn }

func (m *PacketIn) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, m.Buffer)
	b = binary.BigEndian.AppendUint16(b, m.TotalLen)
	b = append(b, byte(m.Reason), m.Table)
	b = binary.BigEndian.AppendUint64(b, m.Cookie)
	b = m.Match.append(b)
	return append(append(b, 0, 0), m.Data...), nil
}

func decodePacketIn(r *reader) *PacketIn {
	m := &PacketIn{Buffer: r.u32(), TotalLen: r.u16(), Reason: PacketInReason(r.u8()), Table: r.u8(), Cookie: r.u64()}
	m.Match = r.match()
	r.skip(2)
	m.Data = r.rest()
	return m
}

// Properties of the Nicira packet-in.
const (
	pi2Packet   = 0
	pi2FullLen  = 1
	pi2Buffer   = 2
	pi2Table    = 3
	pi2Cookie   = 4
	pi2Reason   = 5
	pi2Metadata = 6
	pi2Userdata = 7
	pi2Continue = 8
)

// decodePacketIn2 reads the property list of message NXT_PACKET_IN2.
func decodePacketIn2(r *reader) *PacketIn {
	m := &PacketIn{Buffer: NoBuffer, Cookie: ^uint64(0), Reason: ReasonMiss}
	full, whole := -1, r.b
	for r.more() {
		typ, p := r.property()
		switch typ {
		case pi2Packet:
			m.Data = p.rest()
		case pi2FullLen:
			full = int(p.u32())
		case pi2Buffer:
			m.Buffer = p.u32()
		case pi2Table:
			m.Table = p.u8()
		case pi2Cookie:
			p.skip(4)
			m.Cookie = p.u64()
		case pi2Reason:
			m.Reason = PacketInReason(p.u8())
		case pi2Metadata:
			var err error
			m.Match, err = decodeMatch(p.b)
			p.fail(err)
		case pi2Userdata:
			m.Userdata = p.rest()
		case pi2Continue:
			m.Paused = bytes.Clone(whole)
		}
		r.fail(p.err)
	}
	m.TotalLen = uint16(len(m.Data))
	if full >= 0 {
		m.TotalLen = uint16(full)
	}
	return m
}

// PacketOut sends a packet from the controller (OpenFlow 1.3 §7.3.7).
type PacketOut struct {
	InPort  uint32 // port it seems to come from: PortAny, PortController or a real one
	Buffer  uint32 // 0 and NoBuffer both mean that Data holds the packet
	Actions Actions
	Data    []byte
}

// Type returns TypePacketOut.
func (*PacketOut) Type() MsgType { return TypePacketOut }

func (m *PacketOut) appendBody(b []byte, _ uint32) ([]byte, error) {
	buffer := m.Buffer
	if buffer == 0 {
		buffer = NoBuffer
	}
	b = binary.BigEndian.AppendUint32(b, buffer)
	b = binary.BigEndian.AppendUint32(b, m.InPort)
	if len(m.Actions) > MaxMessageLen {
		return b, ErrTooLong
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Actions)))
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(append(b, m.Actions...), m.Data...), nil
}

func decodePacketOut(r *reader) *PacketOut {
	m := &PacketOut{Buffer: r.u32(), InPort: r.u32()}
	if m.Buffer == 0 {
		m.Buffer = NoBuffer
	}
	n := int(r.u16())
	r.skip(6)
	a, err := decodeActions(r.take(n))
	r.fail(err)
	m.Actions, m.Data = a, r.rest()
	return m
}
