package libopenflow

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// parseMatchTokens reads names and name=value pairs. Those that mean different
// fields for different protocols are read last.
func parseMatchTokens(tokens []string) (Match, error) {
	var m Match
	var late []string
	for _, t := range tokens {
		name, value, hasValue := strings.Cut(t, "=")
		if !hasValue {
			p := protocolByName(name)
			if p == nil {
				return "", fmt.Errorf("match %q: unknown name", t)
			}
			m = m.EthType(p.ethType)
			if p.ipProto >= 0 {
				m = m.IPProto(uint8(p.ipProto))
			}
			continue
		}
		switch name {
		case "tp_src", "tp_dst", "icmp_type", "icmp_code", "nw_src", "nw_dst", "nw_proto", "dl_vlan_pcp", "vlan_pcp":
			late = append(late, t)
			continue
		}
		var err error
		if m, err = m.parse(name, value); err != nil {
			return "", fmt.Errorf("match %s: %w", t, err)
		}
	}
	// nw_proto first: the ports depend on it.
	for _, first := range [2]bool{true, false} {
		for _, t := range late {
			name, value, _ := strings.Cut(t, "=")
			if (name == "nw_proto") != first {
				continue
			}
			var err error
			if m, err = m.parseLate(name, value); err != nil {
				return "", fmt.Errorf("match %s: %w", t, err)
			}
		}
	}
	return m, nil
}

func protocolByName(name string) *protocol {
	for i := range protocols {
		if protocols[i].name == name {
			return &protocols[i]
		}
	}
	return nil
}

// parse adds one field.
func (m Match) parse(name, value string) (Match, error) {
	switch name {
	case "dl_vlan":
		v, err := parseUint(value, 16)
		if err != nil || v > 0xfff {
			return "", fmt.Errorf("%q: expected a VLAN id, 0 to 4095", value)
		}
		return m.VLAN(uint16(v)), nil
	case "vlan_tci":
		return m.parseTCI(value)
	case "nw_tos":
		v, err := parseUint(value, 8)
		if err != nil || v&3 != 0 {
			return "", fmt.Errorf("%q: expected a multiple of 4, 0 to 252", value)
		}
		return m.With(FieldIPDSCP.Is(v >> 2)), nil
	}
	if h, ok := strings.CutPrefix(name, "oxm:"); ok {
		return m.parseUnknown(h, value)
	}
	f := fieldNames.match[name]
	if f == FieldNone {
		return "", fmt.Errorf("unknown field %q", name)
	}
	v, err := parseField(f, value)
	if err != nil {
		return "", err
	}
	return m.With(v), nil
}

// parseLate adds a field whose meaning depends on what else is matched.
func (m Match) parseLate(name, value string) (Match, error) {
	eth, _ := m.Get(FieldEthType)
	ip, _ := m.Get(FieldIPProto)
	f := sharedName(name, eth.value.lo, ip.value.lo)
	switch name {
	case "dl_vlan_pcp", "vlan_pcp":
		f = FieldVLANPCP
		if _, ok := m.Get(FieldVLANVID); !ok {
			m = m.VLANTagged()
		}
	}
	if f == FieldNone {
		return "", fmt.Errorf("needs a protocol that has it")
	}
	v, err := parseField(f, value)
	if err != nil {
		return "", err
	}
	return m.With(v), nil
}

// sharedName tells which field a name stands for that several fields share, given the
// Ethernet type and IP protocol of the match; FieldNone for other names, and where the
// protocol has no such field.
func sharedName(name string, ethType, ipProto uint64) Field {
	isARP := ethType == EthTypeARP || ethType == EthTypeRARP
	ports := map[uint64][2]Field{
		ProtoTCP: {FieldTCPSrc, FieldTCPDst}, ProtoUDP: {FieldUDPSrc, FieldUDPDst}, ProtoSCTP: {FieldSCTPSrc, FieldSCTPDst},
	}[ipProto]
	icmp := map[uint64][2]Field{
		ProtoICMP: {FieldICMPv4Type, FieldICMPv4Code}, ProtoICMPv6: {FieldICMPv6Type, FieldICMPv6Code},
	}[ipProto]
	switch name {
	case "tp_src":
		return ports[0]
	case "tp_dst":
		return ports[1]
	case "icmp_type":
		return icmp[0]
	case "icmp_code":
		return icmp[1]
	case "nw_src", "nw_dst", "nw_proto":
		if isARP {
			return map[string]Field{"nw_src": FieldARPSPA, "nw_dst": FieldARPTPA, "nw_proto": FieldARPOp}[name]
		}
		return fieldNames.match[name]
	}
	return FieldNone
}

// ownName is a name that stands for f whatever the protocol.
func ownName(f Field) string {
	switch f {
	case FieldICMPv4Type:
		return "icmpv4_type"
	case FieldICMPv4Code:
		return "icmpv4_code"
	case FieldIPProto:
		return "ip_proto"
	}
	return fields[f].name
}

// parseTCI reads a tag control word; 0 alone means no tag.
func (m Match) parseTCI(s string) (Match, error) {
	v, err := parseField(FieldVLANTCI, s)
	if err != nil {
		return "", err
	}
	if v.Exact() && v.value.lo == 0 {
		return m.VLANUntagged(), nil
	}
	if pcp := v.mask.lo >> 13; pcp != 0 && pcp != 7 {
		return "", fmt.Errorf("%q: expected a mask with all or none of the priority bits", s)
	}
	return m.With(FieldVLANVID.IsMasked(v.value.lo, v.mask.lo)).
		With(FieldVLANPCP.IsMasked(v.value.lo>>13, v.mask.lo>>13)), nil
}

// parseUnknown reads a field as bytes, as String writes those it does not know.
func (m Match) parseUnknown(header, payload string) (Match, error) {
	h, err1 := hex.DecodeString(header)
	p, err2 := hex.DecodeString(payload)
	if err1 != nil || err2 != nil || len(h) != oxmHeaderLen || int(h[3]) != len(p) {
		return "", fmt.Errorf("expected a header of 4 bytes and its payload in hexadecimal")
	}
	out, err := decodeMatch(append(append([]byte(m), h...), p...))
	if err != nil {
		return "", err
	}
	return out, nil
}
