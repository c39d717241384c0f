package libopenflow

import "encoding/binary"

// Experimenter is a vendor message that this package does not know.
type Experimenter struct {
	ID      uint32
	ExpType uint32
	Data    []byte
}

// Types of vendor messages.
const (
	nxtSetPacketInFormat = 16
	nxtSetControllerID   = 20
	nxtResume            = 28
	nxtFlushCTZone       = 29
	nxtPacketIn2         = 30
	nxtFlushCT           = 32
	onfBundleControl     = 2300
	onfBundleAdd         = 2301
)

// PacketInFormat chooses the form of packet-ins.
type PacketInFormat uint32

// Packet-in formats.
const (
	PacketInFormatStandard PacketInFormat = 0
	PacketInFormat2        PacketInFormat = 2 // NXT_PACKET_IN2: carries userdata
)

// SetPacketInFormat chooses the form of the packet-ins of this connection.
type SetPacketInFormat struct{ Format PacketInFormat }

// SetControllerID gives this connection the id that controller actions name.
type SetControllerID struct{ ID uint16 }

// Resume lets a paused packet go on where it was, with everything it had: registers,
// tunnel fields, connection state (NXT_RESUME).
type Resume struct {
	Paused []byte // of the PacketIn
}

// FlushCTZone forgets every connection of a conntrack zone.
type FlushCTZone struct{ Zone uint16 }

// BundleType says what a BundleControl does or answers.
type BundleType uint16

// Steps of a bundle; each reply has the type of its request plus one.
const (
	BundleOpen         BundleType = 0
	BundleOpenReply    BundleType = 1
	BundleClose        BundleType = 2
	BundleCloseReply   BundleType = 3
	BundleCommit       BundleType = 4
	BundleCommitReply  BundleType = 5
	BundleDiscard      BundleType = 6
	BundleDiscardReply BundleType = 7
)

// BundleFlags are properties of a bundle, the same in all its messages.
type BundleFlags uint16

// Bundle flags.
const (
	BundleAtomic  BundleFlags = 1 // no packet sees a part of it
	BundleOrdered BundleFlags = 2 // applied in the order of the messages
)

// BundleControl opens, closes, commits or discards a bundle (ONF extension 230).
type BundleControl struct {
	Bundle uint32
	Step   BundleType
	Flags  BundleFlags
}

// BundleAdd puts a message into a bundle. The inner message gets the transaction id
// of the BundleAdd, as the extension demands.
type BundleAdd struct {
	Bundle  uint32
	Flags   BundleFlags
	Message Message
}

// Type returns TypeExperimenter.
func (*Experimenter) Type() MsgType { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*SetPacketInFormat) Type() MsgType { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*SetControllerID) Type() MsgType { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*Resume) Type() MsgType { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*FlushCTZone) Type() MsgType { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*BundleControl) Type() MsgType { return TypeExperimenter }

// Type returns TypeExperimenter.
func (*BundleAdd) Type() MsgType { return TypeExperimenter }

func vendor(b []byte, id, typ uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, id)
	return binary.BigEndian.AppendUint32(b, typ)
}

func (m *Experimenter) appendBody(b []byte, _ uint32) ([]byte, error) {
	return append(vendor(b, m.ID, m.ExpType), m.Data...), nil
}

func (m *SetPacketInFormat) appendBody(b []byte, _ uint32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(vendor(b, nxVendor, nxtSetPacketInFormat), uint32(m.Format)), nil
}

func (m *SetControllerID) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = append(vendor(b, nxVendor, nxtSetControllerID), 0, 0, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint16(b, m.ID), nil
}

func (m *Resume) appendBody(b []byte, _ uint32) ([]byte, error) {
	return append(vendor(b, nxVendor, nxtResume), m.Paused...), nil
}

func (m *FlushCTZone) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = append(vendor(b, nxVendor, nxtFlushCTZone), 0, 0, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint16(b, m.Zone), nil
}

func (m *BundleControl) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(vendor(b, onfExperimenter, onfBundleControl), m.Bundle)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Step))
	return binary.BigEndian.AppendUint16(b, uint16(m.Flags)), nil
}

func (m *BundleAdd) appendBody(b []byte, xid uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(vendor(b, onfExperimenter, onfBundleAdd), m.Bundle)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Flags))
	if _, ok := m.Message.(*BundleAdd); ok || m.Message == nil {
		return b, malformed("bundle add without a message that can be in a bundle")
	}
	return Append(b, xid, m.Message)
}

func decodeExperimenter(r *reader) Message {
	id, typ := r.u32(), r.u32()
	switch {
	case id == nxVendor && typ == nxtSetPacketInFormat:
		return &SetPacketInFormat{Format: PacketInFormat(r.u32())}
	case id == nxVendor && typ == nxtSetControllerID:
		r.skip(6)
		return &SetControllerID{ID: r.u16()}
	case id == nxVendor && typ == nxtResume:
		return &Resume{Paused: r.rest()}
	case id == nxVendor && typ == nxtFlushCTZone:
		r.skip(6)
		return &FlushCTZone{Zone: r.u16()}
	case id == nxVendor && typ == nxtFlushCT:
		return decodeFlushCT(r)
	case id == nxVendor && typ == nxtPacketIn2:
		return decodePacketIn2(r)
	case id == onfExperimenter && typ == onfBundleControl:
		return &BundleControl{Bundle: r.u32(), Step: BundleType(r.u16()), Flags: BundleFlags(r.u16())}
	case id == onfExperimenter && typ == onfBundleAdd:
		return decodeBundleAdd(r)
	}
	return &Experimenter{ID: id, ExpType: typ, Data: r.rest()}
}

func decodeBundleAdd(r *reader) *BundleAdd {
	m := &BundleAdd{Bundle: r.u32()}
	r.skip(2)
	m.Flags = BundleFlags(r.u16())
	if r.err != nil {
		return m
	}
	h, err := DecodeHeader(r.b)
	switch {
	case err != nil:
		r.fail(err)
	case h.Type == TypeExperimenter || h.Type == TypeHello:
		// Only mods belong into a bundle; refusing the rest bounds the nesting.
		r.fail(malformed("%s inside a bundle", h.Type))
	default:
		_, inner, err := Decode(r.b)
		r.fail(err)
		m.Message = inner
	}
	return m
}
