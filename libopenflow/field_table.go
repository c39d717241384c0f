package libopenflow

import "fmt"

// fields describes every Field. Where OpenFlow 1.0 and 1.3 have headers of their own
// for one field, Open vSwitch writes the newer one in a match and in set_field and
// the older one in move, load and learn; so does this package.
var fields = makeFields()

func makeFields() [numFields]fieldInfo {
	t := [numFields]fieldInfo{
		FieldDPHash:        {"dp_hash", "NXM_NX_DP_HASH", "dp_hash", hdr(classNXM1, 35, 4), 0, 32, fmtHex},
		FieldRecircID:      {"recirc_id", "NXM_NX_RECIRC_ID", "recirc_id", hdr(classNXM1, 36, 4), 0, 32, fmtHex},
		FieldConjID:        {"conj_id", "NXM_NX_CONJ_ID", "conj_id", hdr(classNXM1, 37, 4), 0, 32, fmtDec},
		FieldInPort:        {"in_port_oxm", "OXM_OF_IN_PORT", "in_port", hdr(classBasic, 0, 4), 0, 32, fmtPort},
		FieldActsetOutput:  {"actset_output", "ONFOXM_ET_ACTSET_OUTPUT", "actset_output", hdr(classExp, 43, 8), 0, 32, fmtPort},
		FieldEthSrc:        {"eth_src", "NXM_OF_ETH_SRC", "dl_src", hdr(classBasic, 4, 6), hdr(classNXM0, 2, 6), 48, fmtMAC},
		FieldEthDst:        {"eth_dst", "NXM_OF_ETH_DST", "dl_dst", hdr(classBasic, 3, 6), hdr(classNXM0, 1, 6), 48, fmtMAC},
		FieldEthType:       {"eth_type", "NXM_OF_ETH_TYPE", "dl_type", hdr(classBasic, 5, 2), hdr(classNXM0, 3, 2), 16, fmtHex},
		FieldVLANVID:       {"vlan_vid", "OXM_OF_VLAN_VID", "", hdr(classBasic, 6, 2), 0, 13, fmtDec},
		FieldVLANPCP:       {"vlan_pcp", "OXM_OF_VLAN_PCP", "", hdr(classBasic, 7, 1), 0, 3, fmtDec},
		FieldMPLSLabel:     {"mpls_label", "OXM_OF_MPLS_LABEL", "mpls_label", hdr(classBasic, 34, 4), 0, 20, fmtDec},
		FieldMPLSTC:        {"mpls_tc", "OXM_OF_MPLS_TC", "mpls_tc", hdr(classBasic, 35, 1), 0, 3, fmtDec},
		FieldMPLSBOS:       {"mpls_bos", "OXM_OF_MPLS_BOS", "mpls_bos", hdr(classBasic, 36, 1), 0, 1, fmtDec},
		FieldIPv4Src:       {"ip_src", "NXM_OF_IP_SRC", "nw_src", hdr(classBasic, 11, 4), hdr(classNXM0, 7, 4), 32, fmtIPv4},
		FieldIPv4Dst:       {"ip_dst", "NXM_OF_IP_DST", "nw_dst", hdr(classBasic, 12, 4), hdr(classNXM0, 8, 4), 32, fmtIPv4},
		FieldIPv6Src:       {"ipv6_src", "NXM_NX_IPV6_SRC", "ipv6_src", hdr(classBasic, 26, 16), hdr(classNXM1, 19, 16), 128, fmtIPv6},
		FieldIPv6Dst:       {"ipv6_dst", "NXM_NX_IPV6_DST", "ipv6_dst", hdr(classBasic, 27, 16), hdr(classNXM1, 20, 16), 128, fmtIPv6},
		FieldIPv6Label:     {"ipv6_label", "NXM_NX_IPV6_LABEL", "ipv6_label", hdr(classBasic, 28, 4), hdr(classNXM1, 27, 4), 20, fmtHex},
		FieldIPFrag:        {"ip_frag", "NXM_NX_IP_FRAG", "nw_frag", hdr(classNXM1, 26, 1), 0, 2, fmtFrag},
		FieldIPDSCP:        {"ip_dscp", "OXM_OF_IP_DSCP", "", hdr(classBasic, 8, 1), 0, 6, fmtDec},
		FieldIPECN:         {"nw_ecn", "NXM_NX_IP_ECN", "nw_ecn", hdr(classBasic, 9, 1), hdr(classNXM1, 28, 1), 2, fmtDec},
		FieldIPTTL:         {"nw_ttl", "NXM_NX_IP_TTL", "nw_ttl", hdr(classNXM1, 29, 1), 0, 8, fmtDec},
		FieldIPProto:       {"nw_proto", "NXM_OF_IP_PROTO", "nw_proto", hdr(classBasic, 10, 1), hdr(classNXM0, 6, 1), 8, fmtDec},
		FieldTCPSrc:        {"tcp_src", "NXM_OF_TCP_SRC", "tp_src", hdr(classBasic, 13, 2), hdr(classNXM0, 9, 2), 16, fmtDec},
		FieldTCPDst:        {"tcp_dst", "NXM_OF_TCP_DST", "tp_dst", hdr(classBasic, 14, 2), hdr(classNXM0, 10, 2), 16, fmtDec},
		FieldTCPFlags:      {"tcp_flags", "NXM_NX_TCP_FLAGS", "tcp_flags", hdr(classExp, 42, 6), hdr(classNXM1, 34, 2), 12, fmtTCPFlags},
		FieldUDPSrc:        {"udp_src", "NXM_OF_UDP_SRC", "tp_src", hdr(classBasic, 15, 2), hdr(classNXM0, 11, 2), 16, fmtDec},
		FieldUDPDst:        {"udp_dst", "NXM_OF_UDP_DST", "tp_dst", hdr(classBasic, 16, 2), hdr(classNXM0, 12, 2), 16, fmtDec},
		FieldSCTPSrc:       {"sctp_src", "OXM_OF_SCTP_SRC", "tp_src", hdr(classBasic, 17, 2), 0, 16, fmtDec},
		FieldSCTPDst:       {"sctp_dst", "OXM_OF_SCTP_DST", "tp_dst", hdr(classBasic, 18, 2), 0, 16, fmtDec},
		FieldICMPv4Type:    {"icmp_type", "NXM_OF_ICMP_TYPE", "icmp_type", hdr(classBasic, 19, 1), hdr(classNXM0, 13, 1), 8, fmtDec},
		FieldICMPv4Code:    {"icmp_code", "NXM_OF_ICMP_CODE", "icmp_code", hdr(classBasic, 20, 1), hdr(classNXM0, 14, 1), 8, fmtDec},
		FieldICMPv6Type:    {"icmpv6_type", "NXM_NX_ICMPV6_TYPE", "icmp_type", hdr(classBasic, 29, 1), hdr(classNXM1, 21, 1), 8, fmtDec},
		FieldICMPv6Code:    {"icmpv6_code", "NXM_NX_ICMPV6_CODE", "icmp_code", hdr(classBasic, 30, 1), hdr(classNXM1, 22, 1), 8, fmtDec},
		FieldNDReserved:    {"nd_reserved", "ERICOXM_OF_ICMPV6_ND_RESERVED", "nd_reserved", hdr(classNDExt, 1, 4), 0, 32, fmtDec},
		FieldNDTarget:      {"nd_target", "NXM_NX_ND_TARGET", "nd_target", hdr(classBasic, 31, 16), hdr(classNXM1, 23, 16), 128, fmtIPv6},
		FieldNDOptionsType: {"nd_options_type", "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE", "nd_options_type", hdr(classNDExt, 2, 1), 0, 8, fmtDec},
		FieldNDSLL:         {"nd_sll", "NXM_NX_ND_SLL", "nd_sll", hdr(classBasic, 32, 6), hdr(classNXM1, 24, 6), 48, fmtMAC},
		FieldNDTLL:         {"nd_tll", "NXM_NX_ND_TLL", "nd_tll", hdr(classBasic, 33, 6), hdr(classNXM1, 25, 6), 48, fmtMAC},
		FieldARPOp:         {"arp_op", "NXM_OF_ARP_OP", "arp_op", hdr(classBasic, 21, 2), hdr(classNXM0, 15, 2), 16, fmtDec},
		FieldARPSPA:        {"arp_spa", "NXM_OF_ARP_SPA", "arp_spa", hdr(classBasic, 22, 4), hdr(classNXM0, 16, 4), 32, fmtIPv4},
		FieldARPTPA:        {"arp_tpa", "NXM_OF_ARP_TPA", "arp_tpa", hdr(classBasic, 23, 4), hdr(classNXM0, 17, 4), 32, fmtIPv4},
		FieldARPSHA:        {"arp_sha", "NXM_NX_ARP_SHA", "arp_sha", hdr(classBasic, 24, 6), hdr(classNXM1, 17, 6), 48, fmtMAC},
		FieldARPTHA:        {"arp_tha", "NXM_NX_ARP_THA", "arp_tha", hdr(classBasic, 25, 6), hdr(classNXM1, 18, 6), 48, fmtMAC},
		FieldTunID:         {"tun_id", "NXM_NX_TUN_ID", "tun_id", hdr(classBasic, 38, 8), hdr(classNXM1, 16, 8), 64, fmtHex},
		FieldTunSrc:        {"tun_src", "NXM_NX_TUN_IPV4_SRC", "tun_src", hdr(classNXM1, 31, 4), 0, 32, fmtIPv4},
		FieldTunDst:        {"tun_dst", "NXM_NX_TUN_IPV4_DST", "tun_dst", hdr(classNXM1, 32, 4), 0, 32, fmtIPv4},
		FieldTunIPv6Src:    {"tun_ipv6_src", "NXM_NX_TUN_IPV6_SRC", "tun_ipv6_src", hdr(classNXM1, 109, 16), 0, 128, fmtIPv6},
		FieldTunIPv6Dst:    {"tun_ipv6_dst", "NXM_NX_TUN_IPV6_DST", "tun_ipv6_dst", hdr(classNXM1, 110, 16), 0, 128, fmtIPv6},
		FieldTunFlags:      {"tun_flags", "NXM_NX_TUN_FLAGS", "tun_flags", hdr(classNXM1, 104, 2), 0, 16, fmtTunFlags},
		FieldPktMark:       {"pkt_mark", "NXM_NX_PKT_MARK", "pkt_mark", hdr(classNXM1, 33, 4), 0, 32, fmtHex},
		FieldCTState:       {"ct_state", "NXM_NX_CT_STATE", "ct_state", hdr(classNXM1, 105, 4), 0, 32, fmtCTState},
		FieldCTZone:        {"ct_zone", "NXM_NX_CT_ZONE", "ct_zone", hdr(classNXM1, 106, 2), 0, 16, fmtDec},
		FieldCTMark:        {"ct_mark", "NXM_NX_CT_MARK", "ct_mark", hdr(classNXM1, 107, 4), 0, 32, fmtHex},
		FieldCTLabel:       {"ct_label", "NXM_NX_CT_LABEL", "ct_label", hdr(classNXM1, 108, 16), 0, 128, fmtHex},
		FieldCTIPv4Src:     {"ct_nw_src", "NXM_NX_CT_NW_SRC", "ct_nw_src", hdr(classNXM1, 120, 4), 0, 32, fmtIPv4},
		FieldCTIPv4Dst:     {"ct_nw_dst", "NXM_NX_CT_NW_DST", "ct_nw_dst", hdr(classNXM1, 121, 4), 0, 32, fmtIPv4},
		FieldCTIPv6Src:     {"ct_ipv6_src", "NXM_NX_CT_IPV6_SRC", "ct_ipv6_src", hdr(classNXM1, 122, 16), 0, 128, fmtIPv6},
		FieldCTIPv6Dst:     {"ct_ipv6_dst", "NXM_NX_CT_IPV6_DST", "ct_ipv6_dst", hdr(classNXM1, 123, 16), 0, 128, fmtIPv6},
		FieldCTProto:       {"ct_nw_proto", "NXM_NX_CT_NW_PROTO", "ct_nw_proto", hdr(classNXM1, 119, 1), 0, 8, fmtDec},
		FieldCTTPSrc:       {"ct_tp_src", "NXM_NX_CT_TP_SRC", "ct_tp_src", hdr(classNXM1, 124, 2), 0, 16, fmtDec},
		FieldCTTPDst:       {"ct_tp_dst", "NXM_NX_CT_TP_DST", "ct_tp_dst", hdr(classNXM1, 125, 2), 0, 16, fmtDec},
		FieldMetadata:      {"metadata", "OXM_OF_METADATA", "metadata", hdr(classBasic, 2, 8), 0, 64, fmtHex},

		FieldInPort16: {"in_port", "NXM_OF_IN_PORT", "", hdr(classNXM0, 0, 2), 0, 16, fmtPort},
		FieldVLANTCI:  {"vlan_tci", "NXM_OF_VLAN_TCI", "", hdr(classNXM0, 4, 2), 0, 16, fmtHex},
		FieldIPTOS:    {"nw_tos", "NXM_OF_IP_TOS", "", hdr(classNXM0, 5, 1), 0, 8, fmtDec},
	}
	for n := range Field(16) {
		t[FieldReg0+n] = fieldInfo{
			fmt.Sprintf("reg%d", n), fmt.Sprintf("NXM_NX_REG%d", n), fmt.Sprintf("reg%d", n),
			hdr(classNXM1, uint32(n), 4), 0, 32, fmtHex,
		}
	}
	for n := range Field(8) {
		t[FieldXReg0+n] = fieldInfo{
			fmt.Sprintf("xreg%d", n), fmt.Sprintf("OXM_OF_PKT_REG%d", n), "",
			hdr(classPktReg, uint32(n), 8), 0, 64, fmtHex,
		}
	}
	for n := range Field(4) {
		t[FieldXXReg0+n] = fieldInfo{
			fmt.Sprintf("xxreg%d", n), fmt.Sprintf("NXM_NX_XXREG%d", n), "",
			hdr(classNXM1, 111+uint32(n), 16), 0, 128, fmtHex,
		}
	}
	for f := range t {
		if t[f].sub == 0 {
			t[f].sub = t[f].oxm
		}
	}
	return t
}
