package libopenflow

import (
	"encoding/hex"
)

// textOrder is the order in which ovs-ofctl prints the fields of a match around the
// protocol's short name; FieldNone stands for that name.
var textOrder = [...]Field{
	FieldPktMark, FieldRecircID, FieldDPHash, FieldConjID, FieldActsetOutput, FieldCTState,
	FieldCTZone, FieldCTMark, FieldCTLabel, FieldCTIPv4Src, FieldCTIPv6Src, FieldCTIPv4Dst,
	FieldCTIPv6Dst, FieldCTProto, FieldCTTPSrc, FieldCTTPDst,
	FieldNone,
	FieldReg0, FieldReg1, FieldReg2, FieldReg3, FieldReg4, FieldReg5, FieldReg6, FieldReg7,
	FieldReg8, FieldReg9, FieldReg10, FieldReg11, FieldReg12, FieldReg13, FieldReg14, FieldReg15,
	FieldTunID, FieldTunSrc, FieldTunDst, FieldTunIPv6Src, FieldTunIPv6Dst, FieldTunFlags,
	FieldMetadata, FieldInPort, FieldVLANVID, FieldVLANPCP, FieldEthSrc, FieldEthDst, FieldEthType,
	FieldIPv4Src, FieldIPv4Dst, FieldIPv6Src, FieldIPv6Dst, FieldIPv6Label, FieldARPSPA,
	FieldARPTPA, FieldIPProto, FieldARPOp, FieldARPSHA, FieldARPTHA, FieldIPDSCP, FieldIPECN,
	FieldIPTTL, FieldMPLSLabel, FieldMPLSTC, FieldMPLSBOS, FieldIPFrag, FieldICMPv4Type,
	FieldICMPv4Code, FieldICMPv6Type, FieldICMPv6Code, FieldTCPSrc, FieldTCPDst, FieldUDPSrc,
	FieldUDPDst, FieldSCTPSrc, FieldSCTPDst, FieldNDTarget, FieldNDSLL, FieldNDTLL,
	FieldNDReserved, FieldNDOptionsType, FieldTCPFlags,
}

// protocol is an Ethernet type, perhaps with an IP protocol, that has a short name.
type protocol struct {
	ethType uint16
	ipProto int // -1: none
	name    string
}

var protocols = [...]protocol{
	{EthTypeIPv4, ProtoICMP, "icmp"},
	{EthTypeIPv4, ProtoTCP, "tcp"},
	{EthTypeIPv4, ProtoUDP, "udp"},
	{EthTypeIPv4, ProtoSCTP, "sctp"},
	{EthTypeIPv4, -1, "ip"},
	{EthTypeIPv6, ProtoICMPv6, "icmp6"},
	{EthTypeIPv6, ProtoTCP, "tcp6"},
	{EthTypeIPv6, ProtoUDP, "udp6"},
	{EthTypeIPv6, ProtoSCTP, "sctp6"},
	{EthTypeIPv6, -1, "ipv6"},
	{EthTypeARP, -1, "arp"},
	{EthTypeRARP, -1, "rarp"},
	{EthTypeMPLS, -1, "mpls"},
	{0x8848, -1, "mplsm"},
}

// String returns the match in the syntax of ovs-ofctl, such as
// "ip,reg2=0x1,nw_dst=10.1.1.2"; the empty string for the match of everything.
func (m Match) String() string { return string(m.appendText(nil)) }

func (m Match) appendText(b []byte) []byte {
	var have [FieldInPort16]FieldValue
	var unknown []oxm
	for o := range m.tlvs() {
		if v, ok := o.value(); ok && o.field.matchable() {
			have[o.field] = v
		} else {
			unknown = append(unknown, o)
		}
	}
	at := len(b)
	short := shortName(&have)
	ethType, ipProto := have[FieldEthType].value.lo, have[FieldIPProto].value.lo
	for _, f := range textOrder {
		switch {
		case f == FieldNone:
			if short != nil {
				b = append(append(b, short.name...), ',')
				have[FieldEthType].Field = FieldNone
				if short.ipProto >= 0 {
					have[FieldIPProto].Field = FieldNone
				}
			}
		case f == FieldVLANVID:
			b = appendVLAN(b, have[FieldVLANVID], have[FieldVLANPCP])
		case f == FieldVLANPCP || have[f].Field == FieldNone:
		case f == FieldIPDSCP:
			b = append(b, "nw_tos="...)
			b = append(appendDec(b, have[f].value.lo<<2), ',')
		default:
			name := fields[f].match
			switch name {
			case "tp_src", "tp_dst", "icmp_type", "icmp_code", "nw_src", "nw_dst", "nw_proto":
				if sharedName(name, ethType, ipProto) != f {
					name = ownName(f) // or it would be read as another field
				}
			}
			b = append(append(b, name...), '=')
			b = append(have[f].appendMasked(b), ',')
		}
	}
	for _, o := range unknown {
		b = append(b, "oxm:"...)
		b = hex.AppendEncode(b, []byte(o.raw[:oxmHeaderLen]))
		b = append(b, '=')
		b = append(hex.AppendEncode(b, []byte(o.raw[oxmHeaderLen:])), ',')
	}
	if len(b) > at {
		b = b[:len(b)-1]
	}
	return b
}

// shortName finds the protocol that the exact eth_type and nw_proto name.
func shortName(have *[FieldInPort16]FieldValue) *protocol {
	eth, ip := have[FieldEthType], have[FieldIPProto]
	if !eth.Exact() {
		return nil
	}
	for i := range protocols {
		p := &protocols[i]
		if uint64(p.ethType) != eth.value.lo {
			continue
		}
		if p.ipProto < 0 || ip.Exact() && uint64(p.ipProto) == ip.value.lo {
			return p
		}
	}
	return nil
}

// appendVLAN writes the tag: dl_vlan and dl_vlan_pcp if that says it all, else the
// tag control word with its mask.
func appendVLAN(b []byte, vid, pcp FieldValue) []byte {
	value := vid.value.lo | pcp.value.lo<<13
	mask := vid.mask.lo | pcp.mask.lo<<13
	if mask == 0 {
		return b
	}
	vidMask := mask & 0xfff
	simple := mask&value&vlanPresent != 0 && (vidMask == 0 || vidMask == 0xfff) && mask&^vlanPresent != 0
	if !simple {
		b = append(b, "vlan_tci="...)
		b = appendHexPad(b, value, 4)
		if mask != 0xffff {
			b = appendHexPad(append(b, '/'), mask, 4)
		}
		return append(b, ',')
	}
	if vidMask != 0 {
		b = append(b, "dl_vlan="...)
		b = append(appendDec(b, value&0xfff), ',')
	}
	if pcp.mask.lo != 0 {
		b = append(b, "dl_vlan_pcp="...)
		b = append(appendDec(b, pcp.value.lo), ',')
	}
	return b
}
