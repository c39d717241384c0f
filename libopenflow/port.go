package libopenflow

import "encoding/binary"

// Port describes a port of the switch (OpenFlow 1.3 §7.2.1).
type Port struct {
	Number     uint32
	MAC        MAC
	Name       string // up to 15 bytes
	Config     uint32 // PortDown, …
	State      uint32 // PortLinkDown, …
	Current    uint32 // features in use
	Advertised uint32
	Supported  uint32
	Peer       uint32
	CurrSpeed  uint32 // kbit/s
	MaxSpeed   uint32 // kbit/s
}

// Bits of Port.Config and Port.State.
const (
	PortDown       uint32 = 1 << 0 // config: administratively down
	PortNoRecv     uint32 = 1 << 2 // config
	PortNoFwd      uint32 = 1 << 5 // config
	PortNoPacketIn uint32 = 1 << 6 // config
	PortLinkDown   uint32 = 1 << 0 // state: no link
	PortBlocked    uint32 = 1 << 1 // state
	PortLive       uint32 = 1 << 2 // state: alive for fast failover
)

const portNameLen = 16

func (p *Port) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, p.Number)
	b = append(b, 0, 0, 0, 0)
	b = append(b, p.MAC[:]...)
	b = append(b, 0, 0)
	b = appendText(b, p.Name, portNameLen)
	for _, v := range [...]uint32{p.Config, p.State, p.Current, p.Advertised, p.Supported, p.Peer, p.CurrSpeed, p.MaxSpeed} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func (r *reader) port() (p Port) {
	p.Number = r.u32()
	r.skip(4)
	p.MAC = r.mac()
	r.skip(2)
	p.Name = r.text(portNameLen)
	for _, v := range [...]*uint32{&p.Config, &p.State, &p.Current, &p.Advertised, &p.Supported, &p.Peer, &p.CurrSpeed, &p.MaxSpeed} {
		*v = r.u32()
	}
	return p
}

// PortReason says what happened to a port.
type PortReason uint8

// Reasons of port-status messages.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// PortStatus reports a change of a port (OpenFlow 1.3 §7.4.3).
type PortStatus struct {
	Reason PortReason
	Port   Port
}

// Type returns TypePortStatus.
func (*PortStatus) Type() MsgType { return TypePortStatus }

func (m *PortStatus) appendBody(b []byte, _ uint32) ([]byte, error) {
	b = append(b, byte(m.Reason), 0, 0, 0, 0, 0, 0, 0)
	return m.Port.append(b), nil
}

func decodePortStatus(r *reader) *PortStatus {
	m := &PortStatus{Reason: PortReason(r.u8())}
	r.skip(7)
	m.Port = r.port()
	return m
}
