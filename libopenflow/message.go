package libopenflow

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is OpenFlow 1.3 in a message header.
const Version = 4

// HeaderLen is the size of the header of every message.
const HeaderLen = 8

// MaxMessageLen is the largest message that the 16-bit length allows.
const MaxMessageLen = 0xffff

// MsgType is the type of a message (OpenFlow 1.3 §7.1).
type MsgType uint8

// The message types that this package knows.
const (
	TypeHello            MsgType = 0
	TypeError            MsgType = 1
	TypeEchoRequest      MsgType = 2
	TypeEchoReply        MsgType = 3
	TypeExperimenter     MsgType = 4
	TypeFeaturesRequest  MsgType = 5
	TypeFeaturesReply    MsgType = 6
	TypeGetConfigRequest MsgType = 7
	TypeGetConfigReply   MsgType = 8
	TypeSetConfig        MsgType = 9
	TypePacketIn         MsgType = 10
	TypeFlowRemoved      MsgType = 11
	TypePortStatus       MsgType = 12
	TypePacketOut        MsgType = 13
	TypeFlowMod          MsgType = 14
	TypeGroupMod         MsgType = 15
	TypeMultipartRequest MsgType = 18
	TypeMultipartReply   MsgType = 19
	TypeBarrierRequest   MsgType = 20
	TypeBarrierReply     MsgType = 21
	TypeRoleRequest      MsgType = 24
	TypeRoleReply        MsgType = 25
	TypeSetAsync         MsgType = 28
	TypeMeterMod         MsgType = 29
)

// Header is the first 8 bytes of a message.
type Header struct {
	Version uint8
	Type    MsgType
	Length  uint16 // of the whole message, at least 8
	XID     uint32 // transaction: a reply has that of its request
}

// Message is an OpenFlow message without its header. The types of this package are
// the only implementations; a message of unknown type is a *Raw.
type Message interface {
	// Type returns the type for the header.
	Type() MsgType
	// appendBody appends everything after the header; xid is that of the header.
	appendBody(b []byte, xid uint32) ([]byte, error)
}

// Errors of the codec. Those that Decode returns wrap ErrMalformed.
var (
	ErrMalformed = errors.New("malformed OpenFlow message")
	ErrTooLong   = errors.New("OpenFlow message longer than 65535 bytes")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Append encodes m with transaction id xid and appends it to b. On error, ErrTooLong
// or one that wraps ErrMalformed, it returns b as it was.
func Append(b []byte, xid uint32, m Message) ([]byte, error) {
	at := len(b)
	out := append(b, Version, byte(m.Type()), 0, 0)
	out = binary.BigEndian.AppendUint32(out, xid)
	out, err := m.appendBody(out, xid)
	if err != nil {
		return b, err
	}
	n := len(out) - at
	if n > MaxMessageLen {
		return b, ErrTooLong
	}
	binary.BigEndian.PutUint16(out[at+2:], uint16(n))
	return out, nil
}

// DecodeHeader reads the header of the message that begins b. It fails when b is
// shorter than a header or the length in it is below 8; the body need not be there.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, malformed("header of %d bytes", len(b))
	}
	h := Header{
		Version: b[0], Type: MsgType(b[1]),
		Length: binary.BigEndian.Uint16(b[2:]), XID: binary.BigEndian.Uint32(b[4:]),
	}
	if h.Length < HeaderLen {
		return h, malformed("length %d in header", h.Length)
	}
	return h, nil
}

// Decode reads the message that begins b, of any version for HELLO, ERROR and ECHO and
// of version 4 for the rest. The result shares no memory with b. A message, action,
// instruction or match field of a kind that this package does not know is kept as
// bytes; one whose lengths do not add up is an error that wraps ErrMalformed.
func Decode(b []byte) (Header, Message, error) {
	h, err := DecodeHeader(b)
	if err != nil {
		return h, nil, err
	}
	if int(h.Length) > len(b) {
		return h, nil, malformed("message of %d bytes with only %d present", h.Length, len(b))
	}
	m, err := decodeBody(h, b[HeaderLen:h.Length])
	if err != nil {
		return h, nil, fmt.Errorf("decode %s: %w", h.Type, err)
	}
	return h, m, nil
}

func decodeBody(h Header, b []byte) (Message, error) {
	r := &reader{b: b}
	var m Message
	switch h.Type {
	case TypeHello:
		m = decodeHello(h.Version, r)
	case TypeError:
		m = decodeError(r)
	case TypeEchoRequest:
		m = &EchoRequest{Data: r.rest()}
	case TypeEchoReply:
		m = &EchoReply{Data: r.rest()}
	}
	if m == nil && h.Version != Version {
		return nil, malformed("version %d, expected %d", h.Version, Version)
	}
	if m == nil {
		m = decodeTyped(h.Type, r)
	}
	if m == nil {
		m = &Raw{MsgType: h.Type, Body: r.rest()}
	}
	return m, r.err
}

// decodeTyped reads the bodies that are the same in no two versions.
func decodeTyped(t MsgType, r *reader) Message {
	switch t {
	case TypeExperimenter:
		return decodeExperimenter(r)
	case TypeFeaturesRequest:
		return &FeaturesRequest{}
	case TypeFeaturesReply:
		return decodeFeatures(r)
	case TypeGetConfigRequest:
		return &GetConfigRequest{}
	case TypeGetConfigReply:
		return &GetConfigReply{Flags: r.u16(), MissSendLen: r.u16()}
	case TypeSetConfig:
		return &SetConfig{Flags: r.u16(), MissSendLen: r.u16()}
	case TypePacketIn:
		return decodePacketIn(r)
	case TypeFlowRemoved:
		return decodeFlowRemoved(r)
	case TypePortStatus:
		return decodePortStatus(r)
	case TypePacketOut:
		return decodePacketOut(r)
	case TypeFlowMod:
		return decodeFlowMod(r)
	case TypeGroupMod:
		return decodeGroupMod(r)
	case TypeMultipartRequest:
		return decodeMultipartRequest(r)
	case TypeMultipartReply:
		return decodeMultipartReply(r)
	case TypeBarrierRequest:
		return &BarrierRequest{}
	case TypeBarrierReply:
		return &BarrierReply{}
	case TypeRoleRequest:
		return decodeRole(r, false)
	case TypeRoleReply:
		return decodeRole(r, true)
	case TypeSetAsync:
		return decodeSetAsync(r)
	case TypeMeterMod:
		return decodeMeterMod(r)
	}
	return nil
}

// Raw is a message of a type that this package does not know.
type Raw struct {
	MsgType MsgType
	Body    []byte
}

// Type returns the type that was on the wire.
func (m *Raw) Type() MsgType { return m.MsgType }

func (m *Raw) appendBody(b []byte, _ uint32) ([]byte, error) { return append(b, m.Body...), nil }
