package libopenflow

import "encoding/binary"

// Hello opens a connection (OpenFlow 1.3 §7.5.1).
type Hello struct {
	// Version is that of the header when received: the highest the peer speaks.
	// Sent hellos always carry Version.
	Version uint8
	// Bitmap has bit n set for each wire version n the peer speaks, up to 63; 0 if
	// the peer sent no bitmap.
	Bitmap uint64
}

// Type returns TypeHello.
func (*Hello) Type() MsgType { return TypeHello }

// Speaks reports whether the sender speaks wire version v: by its bitmap if it sent
// one, else by the version in its header, which is the highest it knows.
func (m *Hello) Speaks(v uint8) bool {
	if m.Bitmap != 0 {
		return v < 64 && m.Bitmap>>v&1 == 1
	}
	return m.Version >= v
}

const helloBitmap = 1

func (m *Hello) appendBody(b []byte, _ uint32) ([]byte, error) {
	if m.Bitmap == 0 {
		return b, nil
	}
	b = actionHeader(b, helloBitmap, 8)
	if m.Bitmap>>32 == 0 {
		return binary.BigEndian.AppendUint32(b, uint32(m.Bitmap)), nil
	}
	b[len(b)-1] = 12
	b = binary.BigEndian.AppendUint32(b, uint32(m.Bitmap))
	b = binary.BigEndian.AppendUint32(b, uint32(m.Bitmap>>32))
	return append(b, 0, 0, 0, 0), nil
}

// decodeHello ignores what it does not understand: a hello must never fail.
func decodeHello(version uint8, r *reader) *Hello {
	m := &Hello{Version: version}
	for len(r.b) >= 4 {
		typ, n := r.u16(), int(r.u16())
		if n < 4 || n-4 > len(r.b) {
			break
		}
		e := r.sub(n - 4)
		r.skip(min((n+7)/8*8-n, len(r.b)))
		if typ != helloBitmap {
			continue
		}
		for shift := 0; shift < 64 && len(e.b) >= 4; shift += 32 {
			m.Bitmap |= uint64(e.u32()) << shift
		}
	}
	r.b = nil
	return m
}

// EchoRequest asks the peer whether it is alive.
type EchoRequest struct{ Data []byte }

// EchoReply answers with the same Data.
type EchoReply struct{ Data []byte }

// FeaturesRequest asks for a FeaturesReply.
type FeaturesRequest struct{}

// FeaturesReply names the switch (OpenFlow 1.3 §7.3.1).
type FeaturesReply struct {
	DatapathID   uint64
	Buffers      uint32
	Tables       uint8
	AuxiliaryID  uint8
	Capabilities uint32
}

// GetConfigRequest asks for a GetConfigReply.
type GetConfigRequest struct{}

// GetConfigReply reports the switch's configuration, see SetConfig.
type GetConfigReply SetConfig

// SetConfig sets how the switch talks to this controller (OpenFlow 1.3 §7.3.2).
type SetConfig struct {
	Flags       uint16 // 0 normal, 1 drop, 2 reassemble fragments
	MissSendLen uint16 // bytes of a packet in a packet-in for a table miss
}

// BarrierRequest asks the switch to finish everything before it.
type BarrierRequest struct{}

// BarrierReply says that everything before the request is done.
type BarrierReply struct{}

// Role is what a controller may do.
type Role uint32

// Roles.
const (
	RoleNoChange Role = 0
	RoleEqual    Role = 1
	RolePrimary  Role = 2 // "master" in the standard
	RoleStandby  Role = 3 // "slave" in the standard
)

// RoleRequest asks for a role (OpenFlow 1.3 §7.3.9).
type RoleRequest struct {
	Role       Role
	Generation uint64
}

// RoleReply tells the role that the controller has now.
type RoleReply RoleRequest

// SetAsync chooses the asynchronous messages to get (OpenFlow 1.3 §7.3.10). Element
// 0 of each pair is for the primary and equal roles, element 1 for standby; bit n
// enables reason n.
type SetAsync struct {
	PacketIn, PortStatus, FlowRemoved [2]uint32
}

// Type returns TypeEchoRequest.
func (*EchoRequest) Type() MsgType { return TypeEchoRequest }

// Type returns TypeEchoReply.
func (*EchoReply) Type() MsgType { return TypeEchoReply }

// Type returns TypeFeaturesRequest.
func (*FeaturesRequest) Type() MsgType { return TypeFeaturesRequest }

// Type returns TypeFeaturesReply.
func (*FeaturesReply) Type() MsgType { return TypeFeaturesReply }

// Type returns TypeGetConfigRequest.
func (*GetConfigRequest) Type() MsgType { return TypeGetConfigRequest }

// Type returns TypeGetConfigReply.
func (*GetConfigReply) Type() MsgType { return TypeGetConfigReply }

// Type returns TypeSetConfig.
func (*SetConfig) Type() MsgType { return TypeSetConfig }

// Type returns TypeBarrierRequest.
func (*BarrierRequest) Type() MsgType { return TypeBarrierRequest }

// Type returns TypeBarrierReply.
func (*BarrierReply) Type() MsgType { return TypeBarrierReply }

// Type returns TypeRoleRequest.
func (*RoleRequest) Type() MsgType { return TypeRoleRequest }

// Type returns TypeRoleReply.
func (*RoleReply) Type() MsgType { return TypeRoleReply }

// Type returns TypeSetAsync.
func (*SetAsync) Type() MsgType { return TypeSetAsync }

func (m *EchoRequest) appendBody(b []byte, _ uint32) ([]byte, error) {
	return append(b, m.Data...), nil
}

func (m *EchoReply) appendBody(b []byte, _ uint32) ([]byte, error) {
	return append(b, m.Data...), nil
}

func (*FeaturesRequest) appendBody(b []byte, _ uint32) ([]byte, error) { return b, nil }

func (m *FeaturesReply) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, m.DatapathID)
	b = binary.BigEndian.AppendUint32(b, m.Buffers)
	b = append(b, m.Tables, m.AuxiliaryID, 0, 0)
	b = binary.BigEndian.AppendUint32(b, m.Capabilities)
	return append(b, 0, 0, 0, 0), nil
}

func (*GetConfigRequest) appendBody(b []byte, _ uint32) ([]byte, error) { return b, nil }

func (m *GetConfigReply) appendBody(b []byte, xid uint32) ([]byte, error) {
	return (*SetConfig)(m).appendBody(b, xid)
}

func (m *SetConfig) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, m.Flags)
	return binary.BigEndian.AppendUint16(b, m.MissSendLen), nil
}

func (*BarrierRequest) appendBody(b []byte, _ uint32) ([]byte, error) { return b, nil }
func (*BarrierReply) appendBody(b []byte, _ uint32) ([]byte, error)   { return b, nil }

func (m *RoleRequest) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, uint32(m.Role))
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 0), m.Generation), nil
}

func (m *RoleReply) appendBody(b []byte, xid uint32) ([]byte, error) {
	return (*RoleRequest)(m).appendBody(b, xid)
}

func (m *SetAsync) appendBody(b []byte, _ uint32) ([]byte, error) {
	for _, p := range [...][2]uint32{m.PacketIn, m.PortStatus, m.FlowRemoved} {
		b = binary.BigEndian.AppendUint32(b, p[0])
		b = binary.BigEndian.AppendUint32(b, p[1])
	}
	return b, nil
}

func decodeFeatures(r *reader) *FeaturesReply {
	m := &FeaturesReply{DatapathID: r.u64(), Buffers: r.u32(), Tables: r.u8(), AuxiliaryID: r.u8()}
	r.skip(2)
	m.Capabilities = r.u32()
	return m
}

func decodeRole(r *reader, reply bool) Message {
	m := RoleRequest{Role: Role(r.u32())}
	r.skip(4)
	m.Generation = r.u64()
	if reply {
		return (*RoleReply)(&m)
	}
	return &m
}

func decodeSetAsync(r *reader) *SetAsync {
	return &SetAsync{
		PacketIn:    [2]uint32{r.u32(), r.u32()},
		PortStatus:  [2]uint32{r.u32(), r.u32()},
		FlowRemoved: [2]uint32{r.u32(), r.u32()},
	}
}
