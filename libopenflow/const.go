package libopenflow

// Ethernet types.
const (
	EthTypeIPv4 = 0x0800
	EthTypeARP  = 0x0806
	EthTypeRARP = 0x8035
	EthTypeVLAN = 0x8100
	EthTypeIPv6 = 0x86dd
	EthTypeMPLS = 0x8847
)

// IP protocol numbers.
const (
	ProtoICMP   = 1
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
	ProtoSCTP   = 132
)

// Bits of ct_state.
const (
	CTNew     = 0x01
	CTEst     = 0x02
	CTRel     = 0x04
	CTReply   = 0x08
	CTInvalid = 0x10
	CTTracked = 0x20
	CTSNAT    = 0x40
	CTDNAT    = 0x80
)

// Reserved port numbers (OpenFlow 1.3 §7.2.1).
const (
	PortMax        uint32 = 0xffffff00
	PortInPort     uint32 = 0xfffffff8
	PortTable      uint32 = 0xfffffff9
	PortNormal     uint32 = 0xfffffffa
	PortFlood      uint32 = 0xfffffffb
	PortAll        uint32 = 0xfffffffc
	PortController uint32 = 0xfffffffd
	PortLocal      uint32 = 0xfffffffe
	PortAny        uint32 = 0xffffffff
)

// Reserved groups, meters, tables and other wild cards.
const (
	GroupAll   uint32 = 0xfffffffc
	GroupAny   uint32 = 0xffffffff
	MeterAll   uint32 = 0xffffffff
	TableAll   uint8  = 0xff
	NoBuffer   uint32 = 0xffffffff
	MaxLenFull uint16 = 0xffff // send the whole packet to the controller
)

// Flow flags (OpenFlow 1.3 §7.3.4.1). Open vSwitch reports all of them back.
const (
	FlowSendRemoved  uint16 = 1 << 0
	FlowCheckOverlap uint16 = 1 << 1
	FlowResetCounts  uint16 = 1 << 2
	FlowNoPktCounts  uint16 = 1 << 3
	FlowNoByteCounts uint16 = 1 << 4
)
