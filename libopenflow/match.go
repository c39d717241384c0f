package libopenflow

import (
	"encoding/binary"
	"iter"
	"net/netip"
)

// Match is what a flow compares packets with: OXM TLVs (OpenFlow 1.3 §7.2.3.2)
// without the ofp_match header and padding, in the one canonical form that Open
// vSwitch itself uses when it reports a flow. So two matches are equal as Go values
// exactly if they match the same packets, and a Match can be a map key.
//
// A Match is an immutable value: every method returns a new one. A field that is
// given twice keeps the later value. Prerequisites (eth_type before IPv4 fields and
// so on) are the caller's business; the switch refuses a match that lacks them.
//
//	of.NewMatch().InPort(3).EthType(of.EthTypeIPv4).IPv4Dst(prefix)
type Match string

// NewMatch returns the match that every packet satisfies.
func NewMatch() Match { return "" }

// oxm is one TLV of a match.
type oxm struct {
	field Field // FieldNone for a TLV this package does not know
	head  uint32
	raw   string // the TLV with its header
}

// oxmHeaderLen is the size of an OXM header without experimenter id.
const oxmHeaderLen = 4

// payload splits the TLV into value and mask; mask is nil when there is none.
func (o oxm) payload() (value, mask string) {
	p := o.raw[oxmHeaderLen:]
	if o.head>>16 == classExp && len(p) >= 4 {
		p = p[4:]
	}
	if o.head&hasMask != 0 {
		return p[:len(p)/2], p[len(p)/2:]
	}
	return p, ""
}

const hasMask = 1 << 8

// cutOXM takes the first TLV off s. A truncated one gives ok == false.
func cutOXM(s string) (o oxm, rest string, ok bool) {
	if len(s) < oxmHeaderLen {
		return oxm{}, "", false
	}
	h := uint32(s[0])<<24 | uint32(s[1])<<16 | uint32(s[2])<<8 | uint32(s[3])
	n := oxmHeaderLen + int(h&0xff)
	if len(s) < n {
		return oxm{}, "", false
	}
	o = oxm{head: h, raw: s[:n]}
	if f := fieldOf(h, s[oxmHeaderLen:n]); f.matchable() || f >= FieldXReg0 {
		o.field = f
	}
	return o, s[n:], true
}

// tlvs iterates over the TLVs; a truncated rest ends the iteration.
func (m Match) tlvs() iter.Seq[oxm] {
	return func(yield func(oxm) bool) {
		for s := string(m); s != ""; {
			o, rest, ok := cutOXM(s)
			if !ok || !yield(o) {
				return
			}
			s = rest
		}
	}
}

// Fields iterates over the fields of the match in canonical order. TLVs that this
// package does not know are left out.
func (m Match) Fields() iter.Seq[FieldValue] {
	return func(yield func(FieldValue) bool) {
		for o := range m.tlvs() {
			if v, ok := o.value(); ok && !yield(v) {
				return
			}
		}
	}
}

// Get returns the value that the match asks of field f, and whether it asks any.
func (m Match) Get(f Field) (FieldValue, bool) {
	for o := range m.tlvs() {
		if o.field == f {
			return o.value()
		}
	}
	return FieldValue{}, false
}

// value reads the TLV of a known field.
func (o oxm) value() (FieldValue, bool) {
	if o.field == FieldNone {
		return FieldValue{}, false
	}
	v, mask := o.payload()
	if mask == "" {
		return o.field.masked(wordOf([]byte(v)), ones(128)), true
	}
	return o.field.masked(wordOf([]byte(v)), wordOf([]byte(mask))), true
}

// With returns the match with one more condition. A value without any bit in its
// mask is no condition and removes the field from the match; a FieldValue of a
// register pair (xreg, xxreg) becomes conditions on the registers. The zero
// FieldValue, and a field that cannot be matched, give a match that the switch
// refuses: a mistake must never widen a match.
func (m Match) With(v FieldValue) Match {
	switch {
	case v.Field >= FieldXXReg0 && v.Field <= FieldXXReg3:
		r := FieldReg0 + 4*(v.Field-FieldXXReg0)
		return m.withWide(v, r, 4)
	case v.Field >= FieldXReg0 && v.Field <= FieldXReg7:
		r := FieldReg0 + 2*(v.Field-FieldXReg0)
		return m.withWide(v, r, 2)
	case !v.Field.matchable():
		return m + poison
	}
	v = v.cut()
	head, tail := m.split(v.Field)
	var buf [72]byte
	b := append(buf[:0], head...)
	if !v.mask.zero() {
		b = v.appendOXM(b)
	}
	return Match(append(b, tail...))
}

// poison is a TLV of an experimenter that does not exist.
const poison Match = "\xff\xff\xfe\x04\x00\x00\x00\x00"

// withWide spreads a wide register over n 32-bit ones, the first holding the
// highest bits.
func (m Match) withWide(v FieldValue, first Field, n int) Match {
	for i := range n {
		sh := 32 * (n - 1 - i)
		m = m.With((first + Field(i)).masked(v.value.shr(sh), v.mask.shr(sh)))
	}
	return m
}

// split cuts the match where f belongs, leaving out a TLV of f itself.
func (m Match) split(f Field) (head, tail Match) {
	at := 0
	for o := range m.tlvs() {
		if o.field == FieldNone || o.field > f {
			break
		}
		if o.field == f {
			return m[:at], m[at+len(o.raw):]
		}
		at += len(o.raw)
	}
	return m[:at], m[at:]
}

// cut leaves those bits of a condition that the switch knows. Conditions on ct_state
// and tun_flags are therefore never exact.
func (v FieldValue) cut() FieldValue {
	known := ^uint64(0)
	switch v.Field {
	case FieldCTState:
		known = ctStateKnown
	case FieldTunFlags:
		known = tunFlagsKnown
	}
	v.value.lo &= known
	v.mask.lo &= known
	return v
}

// appendOXM writes the TLV of v as the switch would in a match.
func (v FieldValue) appendOXM(b []byte) []byte {
	info := &fields[v.Field]
	h, n := info.oxm, info.bytes()
	exact := v.Exact()
	if exact {
		b = binary.BigEndian.AppendUint32(b, h)
	} else {
		extra := uint32(n)
		b = binary.BigEndian.AppendUint32(b, h+extra|hasMask)
	}
	if h>>16 == classExp {
		b = binary.BigEndian.AppendUint32(b, onfExperimenter)
	}
	b = appendWord(b, v.value, n)
	if !exact {
		b = appendWord(b, v.mask, n)
	}
	return b
}

// The bits that the switch knows of fields with room for more.
const (
	ctStateKnown  = 0xff
	tunFlagsKnown = 0x1
)

// InPort matches the ingress port.
func (m Match) InPort(port uint32) Match { return m.With(FieldInPort.Is(uint64(port))) }

// Metadata matches the bits of mask in the metadata of the packet.
func (m Match) Metadata(v, mask uint64) Match { return m.With(FieldMetadata.IsMasked(v, mask)) }

// Reg matches the whole of register n, 0…15.
func (m Match) Reg(n int, v uint32) Match { return m.With(FieldReg(n).Is(uint64(v))) }

// RegMasked matches the bits of mask in register n, 0…15.
func (m Match) RegMasked(n int, v, mask uint32) Match {
	return m.With(FieldReg(n).IsMasked(uint64(v), uint64(mask)))
}

// EthSrc matches the Ethernet source address.
func (m Match) EthSrc(a MAC) Match { return m.With(FieldEthSrc.IsMAC(a)) }

// EthSrcMasked matches the bits of mask in the Ethernet source address.
func (m Match) EthSrcMasked(a, mask MAC) Match { return m.With(FieldEthSrc.IsMACMasked(a, mask)) }

// EthDst matches the Ethernet destination address.
func (m Match) EthDst(a MAC) Match { return m.With(FieldEthDst.IsMAC(a)) }

// EthDstMasked matches the bits of mask in the Ethernet destination address.
func (m Match) EthDstMasked(a, mask MAC) Match { return m.With(FieldEthDst.IsMACMasked(a, mask)) }

// EthType matches the Ethernet type behind VLAN tags.
func (m Match) EthType(t uint16) Match { return m.With(FieldEthType.Is(uint64(t))) }

// VLAN matches packets whose outer tag has VLAN id vid, 0…4095.
func (m Match) VLAN(vid uint16) Match {
	return m.With(FieldVLANVID.Is(uint64(vid&0xfff) | vlanPresent))
}

// VLANTagged matches packets with any VLAN tag.
func (m Match) VLANTagged() Match { return m.With(FieldVLANVID.IsMasked(vlanPresent, vlanPresent)) }

// VLANUntagged matches packets without a VLAN tag.
func (m Match) VLANUntagged() Match { return m.With(FieldVLANVID.Is(0)) }

// vlanPresent is the bit of vlan_vid that says there is a tag.
const vlanPresent = 0x1000

// IP matches all IPv4 packets.
func (m Match) IP() Match { return m.EthType(EthTypeIPv4) }

// IPv6 matches all IPv6 packets.
func (m Match) IPv6() Match { return m.EthType(EthTypeIPv6) }

// ARP matches ARP packets with the operation op; 0 means any.
func (m Match) ARP(op uint16) Match {
	m = m.EthType(EthTypeARP)
	if op != 0 {
		m = m.With(FieldARPOp.Is(uint64(op)))
	}
	return m
}

// IPProto matches the IPv4 protocol or the IPv6 next header.
func (m Match) IPProto(p uint8) Match { return m.With(FieldIPProto.Is(uint64(p))) }

// IPv4Src matches IPv4 source addresses in p.
func (m Match) IPv4Src(p netip.Prefix) Match { return m.With(FieldIPv4Src.IsPrefix(p)) }

// IPv4Dst matches IPv4 destination addresses in p.
func (m Match) IPv4Dst(p netip.Prefix) Match { return m.With(FieldIPv4Dst.IsPrefix(p)) }

// IPv6Src matches IPv6 source addresses in p.
func (m Match) IPv6Src(p netip.Prefix) Match { return m.With(FieldIPv6Src.IsPrefix(p)) }

// IPv6Dst matches IPv6 destination addresses in p.
func (m Match) IPv6Dst(p netip.Prefix) Match { return m.With(FieldIPv6Dst.IsPrefix(p)) }

// Src sets the Ethernet type of p's family and matches source addresses in p.
func (m Match) Src(p netip.Prefix) Match {
	if p.Addr().Unmap().Is4() {
		return m.IP().IPv4Src(p)
	}
	return m.IPv6().IPv6Src(p)
}

// Dst sets the Ethernet type of p's family and matches destination addresses in p.
func (m Match) Dst(p netip.Prefix) Match {
	if p.Addr().Unmap().Is4() {
		return m.IP().IPv4Dst(p)
	}
	return m.IPv6().IPv6Dst(p)
}

// ARPSPA matches ARP sender addresses in p.
func (m Match) ARPSPA(p netip.Prefix) Match { return m.With(FieldARPSPA.IsPrefix(p)) }

// ARPTPA matches ARP target addresses in p.
func (m Match) ARPTPA(p netip.Prefix) Match { return m.With(FieldARPTPA.IsPrefix(p)) }

// ARPSHA matches the ARP sender hardware address.
func (m Match) ARPSHA(a MAC) Match { return m.With(FieldARPSHA.IsMAC(a)) }

// ICMPv4 sets the prerequisites of, and matches, an ICMP type.
func (m Match) ICMPv4(typ uint8) Match {
	return m.IP().IPProto(ProtoICMP).With(FieldICMPv4Type.Is(uint64(typ)))
}

// ICMPv6 sets the prerequisites of, and matches, an ICMPv6 type.
func (m Match) ICMPv6(typ uint8) Match {
	return m.IPv6().IPProto(ProtoICMPv6).With(FieldICMPv6Type.Is(uint64(typ)))
}

// NDTarget matches the target address of a neighbor solicitation or advertisement.
func (m Match) NDTarget(a netip.Addr) Match { return m.With(FieldNDTarget.IsAddr(a)) }

// TCPDst matches the TCP destination port.
func (m Match) TCPDst(port uint16) Match { return m.With(FieldTCPDst.Is(uint64(port))) }

// UDPDst matches the UDP destination port.
func (m Match) UDPDst(port uint16) Match { return m.With(FieldUDPDst.Is(uint64(port))) }

// TunID matches the tunnel key (the VNI of VXLAN).
func (m Match) TunID(id uint64) Match { return m.With(FieldTunID.Is(id)) }

// TunSrc matches the outer source address of a tunnelled packet, IPv4 or IPv6.
func (m Match) TunSrc(a netip.Addr) Match {
	if a.Unmap().Is4() {
		return m.With(FieldTunSrc.IsAddr(a.Unmap()))
	}
	return m.With(FieldTunIPv6Src.IsAddr(a))
}

// CTState matches the bits of mask in the connection-tracking state (CTNew, …).
func (m Match) CTState(v, mask uint32) Match {
	return m.With(FieldCTState.IsMasked(uint64(v), uint64(mask)))
}

// ConjID matches the packets for which conjunction id holds.
func (m Match) ConjID(id uint32) Match { return m.With(FieldConjID.Is(uint64(id))) }
