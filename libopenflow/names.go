package libopenflow

// nameIndex finds fields by the names of ovs-ofctl.
type nameIndex struct {
	match map[string]Field // names on the left of "=" in a match
	set   map[string]Field // names in set_field and learn
	sub   map[string]Field // names of subfields
}

var fieldNames = makeNames()

func makeNames() *nameIndex {
	x := &nameIndex{map[string]Field{}, map[string]Field{}, map[string]Field{}}
	for f := Field(1); f < numFields; f++ {
		i := &fields[f]
		x.set[i.name] = f
		x.sub[i.nxm] = f
		x.sub[i.name] = f
		if f < FieldInPort16 || f >= FieldXReg0 {
			x.match[i.name] = f
		}
		if i.match != "" {
			x.match[i.match] = f
		}
	}
	for name, f := range map[string]Field{
		"dl_src": FieldEthSrc, "dl_dst": FieldEthDst, "dl_type": FieldEthType, "nw_src": FieldIPv4Src,
		"nw_dst": FieldIPv4Dst, "ip_proto": FieldIPProto, "ip_ecn": FieldIPECN, "tunnel_id": FieldTunID,
		"icmpv4_type": FieldICMPv4Type, "icmpv4_code": FieldICMPv4Code, "ip_ttl": FieldIPTTL,
	} {
		x.set[name], x.sub[name], x.match[name] = f, f, f
	}
	for name, f := range map[string]Field{
		"OXM_OF_ETH_SRC": FieldEthSrc, "OXM_OF_ETH_DST": FieldEthDst, "OXM_OF_ETH_TYPE": FieldEthType,
		"OXM_OF_IPV4_SRC": FieldIPv4Src, "OXM_OF_IPV4_DST": FieldIPv4Dst, "OXM_OF_IPV6_SRC": FieldIPv6Src,
		"OXM_OF_IPV6_DST": FieldIPv6Dst, "OXM_OF_ARP_OP": FieldARPOp, "OXM_OF_ARP_SPA": FieldARPSPA,
		"OXM_OF_ARP_TPA": FieldARPTPA, "OXM_OF_ARP_SHA": FieldARPSHA, "OXM_OF_ARP_THA": FieldARPTHA,
		"OXM_OF_TUNNEL_ID": FieldTunID, "OXM_OF_TCP_SRC": FieldTCPSrc, "OXM_OF_TCP_DST": FieldTCPDst,
		"OXM_OF_UDP_SRC": FieldUDPSrc, "OXM_OF_UDP_DST": FieldUDPDst, "OXM_OF_IP_PROTO": FieldIPProto,
		"OXM_OF_IP_ECN": FieldIPECN,
	} {
		x.sub[name] = f
	}
	for _, name := range []string{"tp_src", "tp_dst", "icmp_type", "icmp_code"} {
		delete(x.match, name) // these depend on the protocol
	}
	return x
}
