package libopenflow

// Field names one header, metadata or register field of a packet. The constants
// stand in the order in which Open vSwitch writes fields into a match, which makes
// their numeric order the canonical order of a Match.
type Field uint8

// The fields. Those marked "subfield" cannot appear in a Match: they exist as source
// or destination of Move, Load and Learn only.
const (
	FieldNone Field = iota
	FieldDPHash
	FieldRecircID
	FieldConjID
	FieldInPort
	FieldActsetOutput
	FieldEthSrc
	FieldEthDst
	FieldEthType
	FieldVLANVID
	FieldVLANPCP
	FieldMPLSTC
	FieldMPLSBOS
	FieldMPLSLabel
	FieldIPv4Src
	FieldIPv4Dst
	FieldIPv6Src
	FieldIPv6Dst
	FieldIPv6Label
	FieldIPFrag
	FieldIPDSCP
	FieldIPECN
	FieldIPTTL
	FieldIPProto
	FieldTCPSrc
	FieldTCPDst
	FieldTCPFlags
	FieldUDPSrc
	FieldUDPDst
	FieldSCTPSrc
	FieldSCTPDst
	FieldICMPv4Type
	FieldICMPv4Code
	FieldICMPv6Type
	FieldICMPv6Code
	FieldNDReserved
	FieldNDTarget
	FieldNDOptionsType
	FieldNDSLL
	FieldNDTLL
	FieldARPOp
	FieldARPSPA
	FieldARPTPA
	FieldARPSHA
	FieldARPTHA
	FieldTunID
	FieldTunFlags
	FieldTunSrc
	FieldTunDst
	FieldTunIPv6Src
	FieldTunIPv6Dst
	FieldReg0
	FieldReg1
	FieldReg2
	FieldReg3
	FieldReg4
	FieldReg5
	FieldReg6
	FieldReg7
	FieldReg8
	FieldReg9
	FieldReg10
	FieldReg11
	FieldReg12
	FieldReg13
	FieldReg14
	FieldReg15
	FieldPktMark
	FieldCTState
	FieldCTZone
	FieldCTMark
	FieldCTLabel
	FieldCTIPv4Src
	FieldCTIPv4Dst
	FieldCTIPv6Src
	FieldCTIPv6Dst
	FieldCTProto
	FieldCTTPSrc
	FieldCTTPDst
	FieldMetadata

	FieldInPort16 // subfield: the 16-bit OpenFlow 1.0 number of the ingress port
	FieldVLANTCI  // subfield: the whole 802.1Q tag control word
	FieldIPTOS    // subfield: DSCP and two zero bits, as in the IP header
	FieldXReg0    // xreg n is the pair reg 2n (high half), reg 2n+1
	FieldXReg1
	FieldXReg2
	FieldXReg3
	FieldXReg4
	FieldXReg5
	FieldXReg6
	FieldXReg7
	FieldXXReg0 // xxreg n is the four registers reg 4n (highest) to reg 4n+3
	FieldXXReg1
	FieldXXReg2
	FieldXXReg3

	numFields
)

// OXM and NXM classes (OpenFlow 1.3 §7.2.3.3; Nicira extensions).
const (
	classNXM0   = 0x0000 // NXM_OF: the OpenFlow 1.0 fields
	classNXM1   = 0x0001 // NXM_NX: the Nicira fields
	classBasic  = 0x8000 // OXM_OF
	classPktReg = 0x8001 // OpenFlow 1.5 packet registers
	classNDExt  = 0x1000 // Open vSwitch extension of neighbor discovery
	classExp    = 0xffff // experimenter
)

// onfExperimenter is the ONF's experimenter id.
const onfExperimenter = 0x4f4e4600

// fieldFormat says how a value is written in text.
type fieldFormat uint8

const (
	fmtDec fieldFormat = iota
	fmtHex
	fmtMAC
	fmtIPv4
	fmtIPv6
	fmtPort
	fmtTCPFlags
	fmtCTState
	fmtTunFlags
	fmtFrag
)

// fieldInfo is one row of the field table.
type fieldInfo struct {
	name   string // in set_field; also accepted in a match
	nxm    string // in move, load, learn and output
	match  string // in a match; "" if only the shorthand code writes it
	oxm    uint32 // header in a match and in set_field
	sub    uint32 // header in move, load, learn and output
	bits   uint16 // meaningful bits, the low ones
	format fieldFormat
}

// hdr makes a TLV header without mask for a payload of n bytes.
func hdr(class, number, n uint32) uint32 { return class<<16 | number<<9 | n }

// bytes returns the size of the value on the wire, without an experimenter id.
func (i *fieldInfo) bytes() int {
	n := (int(i.bits) + 7) / 8
	if n == 3 {
		n = 4
	}
	return n
}

// valid reports whether f is one of the constants.
func (f Field) valid() bool { return f > FieldNone && f < numFields }

// Bits returns the width of the field in bits, 0 for an invalid one.
func (f Field) Bits() int {
	if !f.valid() {
		return 0
	}
	return int(fields[f].bits)
}

// String returns the field's name as in a set_field action, such as "eth_dst".
func (f Field) String() string {
	if !f.valid() {
		return "none"
	}
	return fields[f].name
}

// FieldReg returns register n, 0…15; FieldNone for any other n.
func FieldReg(n int) Field {
	if n < 0 || n > 15 {
		return FieldNone
	}
	return FieldReg0 + Field(n)
}

// FieldXReg returns the 64-bit register n, 0…7; FieldNone for any other n.
func FieldXReg(n int) Field {
	if n < 0 || n > 7 {
		return FieldNone
	}
	return FieldXReg0 + Field(n)
}

// FieldXXReg returns the 128-bit register n, 0…3; FieldNone for any other n.
func FieldXXReg(n int) Field {
	if n < 0 || n > 3 {
		return FieldNone
	}
	return FieldXXReg0 + Field(n)
}

// matchable reports whether the field can stand in a Match.
func (f Field) matchable() bool { return f > FieldNone && f < FieldInPort16 }
