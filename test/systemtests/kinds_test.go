package systemtests

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/lab"
)

// sender is what frames are made from: who sends, and the neighbor they are about.
type sender struct {
	mac, otherMAC net.HardwareAddr
	ip4, other4   netip.Addr
	ip6, other6   netip.Addr
	link6         netip.Addr // own link-local address
}

func senderOf(own, other lab.Container) sender {
	s := sender{
		mac: hardware(own.MAC), otherMAC: hardware(other.MAC),
		ip4: netip.MustParseAddr(own.IPv4), other4: netip.MustParseAddr(other.IPv4),
		ip6: netip.MustParseAddr(own.IPv6), other6: netip.MustParseAddr(other.IPv6),
	}
	s.link6 = ofnet.LinkLocal(ofnet.MAC(s.mac))
	return s
}

// kind is a kind of frame. mark is to be somewhere in it.
type kind struct {
	name    string
	foreign bool // not the sender's own: goes nowhere
	frame   func(s sender, mark []byte) []byte
}

var (
	broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	none4     = netip.IPv4Unspecified()
	none6     = netip.IPv6Unspecified()
	strange6  = netip.MustParseAddr("fe80::99")
	allNodes  = netip.MustParseAddr("ff02::1")
)

// ethernet is a frame, filled up to the shortest there is.
func ethernet(dst, src net.HardwareAddr, typ uint16, payload ...[]byte) []byte {
	f := slices.Concat(dst, src, binary.BigEndian.AppendUint16(nil, typ), slices.Concat(payload...))
	return append(f, make([]byte, max(0, 60-len(f)))...)
}

// groupMAC is the address of a multicast group on the link (RFC 1112, RFC 2464).
func groupMAC(a netip.Addr) net.HardwareAddr {
	if a.Is4() {
		b := a.As4()
		return net.HardwareAddr{1, 0, 0x5e, b[1] & 0x7f, b[2], b[3]}
	}
	b := a.As16()
	return net.HardwareAddr{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// macOf is where the link carries a packet to an address: to a group, or the neighbor.
func (s sender) macOf(dst netip.Addr) net.HardwareAddr {
	switch {
	case dst == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return broadcast
	case dst.IsMulticast():
		return groupMAC(dst)
	}
	return s.otherMAC
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		sum += word
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// fragment says which part of a packet it is: the offset in units of 8 bytes.
type fragment struct {
	offset uint16
	more   bool
}

func ip4(src, dst netip.Addr, proto, ttl byte, part fragment, options, payload []byte) []byte {
	h := make([]byte, 20, 20+len(options)+len(payload))
	h[0] = 0x40 | byte(5+len(options)/4)
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(options)+len(payload)))
	binary.BigEndian.PutUint16(h[4:], 0x1234)
	flags := part.offset
	if part.more {
		flags |= 0x2000
	}
	binary.BigEndian.PutUint16(h[6:], flags)
	h[8], h[9] = ttl, proto
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	h = append(h, options...)
	binary.BigEndian.PutUint16(h[10:], checksum(h))
	return append(h, payload...)
}

func ip6(src, dst netip.Addr, next, hops byte, payload []byte) []byte {
	h := make([]byte, 40, 40+len(payload))
	h[0] = 0x60
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	h[6], h[7] = next, hops
	copy(h[8:], src.AsSlice())
	copy(h[24:], dst.AsSlice())
	return append(h, payload...)
}

// pseudo is what checksums of upper layers cover besides their own.
func pseudo(src, dst netip.Addr, proto byte, length int) []byte {
	p := slices.Concat(src.AsSlice(), dst.AsSlice())
	p = binary.BigEndian.AppendUint32(p, uint32(length))
	return append(p, 0, 0, 0, proto)
}

func udpTo(src, dst netip.Addr, from, to uint16, payload []byte) []byte {
	u := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	u = binary.BigEndian.AppendUint16(u, uint16(8+len(payload)))
	u = append(append(u, 0, 0), payload...)
	binary.BigEndian.PutUint16(u[6:], checksum(append(pseudo(src, dst, 17, len(u)), u...)))
	return u
}

func icmp6(src, dst netip.Addr, typ byte, body []byte) []byte {
	m := append([]byte{typ, 0, 0, 0}, body...)
	binary.BigEndian.PutUint16(m[2:], checksum(append(pseudo(src, dst, 58, len(m)), m...)))
	return m
}

func markOnly(_ sender, mark []byte) []byte { return append(make([]byte, 8), mark...) }

// datagram is UDP from one of the sender's addresses to another address.
func (s sender) datagram(src, dst netip.Addr, from, to uint16, mark []byte) []byte {
	u := udpTo(src, dst, from, to, mark)
	if src.Is4() {
		return ethernet(s.macOf(dst), s.mac, 0x0800, ip4(src, dst, 17, 64, fragment{}, nil, u))
	}
	return ethernet(s.macOf(dst), s.mac, 0x86dd, ip6(src, dst, 17, 64, u))
}

// proto is a packet of a protocol of its own from the sender's address.
func (s sender) proto(number byte, dst netip.Addr, ttl byte, mark []byte) []byte {
	return ethernet(s.macOf(dst), s.mac, 0x0800, ip4(s.ip4, dst, number, ttl, fragment{}, nil, markOnly(s, mark)))
}

func (s sender) icmp4(dst netip.Addr, typ byte, mark []byte) []byte {
	m := slices.Concat([]byte{typ, 0, 0, 0, 0, 0, 0, 0}, mark)
	binary.BigEndian.PutUint16(m[2:], checksum(m))
	return ethernet(s.macOf(dst), s.mac, 0x0800, ip4(s.ip4, dst, 1, 1, fragment{}, nil, m))
}

func (s sender) arp(op uint16, sha net.HardwareAddr, spa, tpa netip.Addr, dst net.HardwareAddr, mark []byte) []byte {
	a := slices.Concat([]byte{0, 1, 8, 0, 6, 4}, binary.BigEndian.AppendUint16(nil, op), sha, spa.AsSlice(), make([]byte, 6), tpa.AsSlice())
	return ethernet(dst, s.mac, 0x0806, a, mark)
}

func (s sender) igmp(typ byte, dst netip.Addr, body []byte) []byte {
	m := append([]byte{typ, 10, 0, 0}, body...)
	binary.BigEndian.PutUint16(m[2:], checksum(m))
	return ethernet(s.macOf(dst), s.mac, 0x0800, ip4(s.ip4, dst, 2, 1, fragment{}, []byte{0x94, 4, 0, 0}, m))
}

const optionSource, optionTarget, optionMark = 1, 2, 253 // the last for experiments (RFC 4727)

func option(typ byte, value []byte) []byte {
	return append([]byte{typ, byte((len(value) + 9) / 8)}, pad(value)...)
}

// pad fills an option of neighbor discovery up to units of 8 bytes.
func pad(value []byte) []byte {
	return append(slices.Clone(value), make([]byte, (8-(len(value)+2)%8)%8)...)
}

// nd is a message of neighbor discovery about a target, with options.
func (s sender) nd(typ byte, src, dst, target netip.Addr, mark []byte, options ...[]byte) []byte {
	flags := []byte{0, 0, 0, 0}
	if typ == 136 {
		flags[0] = 0x20
	}
	body := slices.Concat(flags, target.AsSlice(), slices.Concat(options...), option(optionMark, mark))
	return ethernet(s.macOf(dst), s.mac, 0x86dd, ip6(src, dst, 58, 255, icmp6(src, dst, typ, body)))
}

// icmp is another message of ICMPv6.
func (s sender) icmp(typ byte, src, dst netip.Addr, mark []byte) []byte {
	return ethernet(s.macOf(dst), s.mac, 0x86dd, ip6(src, dst, 58, 255, icmp6(src, dst, typ, append(make([]byte, 20), mark...))))
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// kinds are the kinds of frames that docs/source-protection.md lists, in its order.
func kinds() []kind {
	own := func(name string, frame func(s sender, mark []byte) []byte) kind {
		return kind{name: name, frame: frame}
	}
	foreign := func(name string, frame func(s sender, mark []byte) []byte) kind { return kind{name, true, frame} }
	var (
		nobody4  = func(s sender) netip.Addr { b := s.ip4.As4(); b[3] = 200; return netip.AddrFrom4(b) }
		nobody6  = func(s sender) netip.Addr { b := s.ip6.As16(); b[15] = 200; return netip.AddrFrom16(b) }
		solicits = addr("ff02::1:ff00:c8")
		all      = addr("255.255.255.255")
	)
	tagged := func(s sender, mark []byte, tags ...uint16) []byte {
		plain := s.datagram(s.ip4, s.other4, 1000, 1000, mark)
		f := slices.Clone(plain[:12])
		for i, t := range tags {
			typ := uint16(0x8100)
			if i < len(tags)-1 {
				typ = 0x88a8
			}
			f = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(f, typ), t)
		}
		return append(f, plain[12:]...)
	}
	part := func(s sender, src netip.Addr, p fragment, payload []byte) []byte {
		return ethernet(s.otherMAC, s.mac, 0x0800, ip4(src, s.other4, 17, 64, p, nil, payload))
	}
	return []kind{
		own("UDP", func(s sender, m []byte) []byte { return s.datagram(s.ip4, s.other4, 1000, 1000, m) }),
		own("UDP over IPv6", func(s sender, m []byte) []byte { return s.datagram(s.ip6, s.other6, 1000, 1000, m) }),
		own("SCTP", func(s sender, m []byte) []byte { return s.proto(132, s.other4, 64, m) }),
		own("GRE", func(s sender, m []byte) []byte { return s.proto(47, s.other4, 64, m) }),
		own("ESP", func(s sender, m []byte) []byte { return s.proto(50, s.other4, 64, m) }),
		own("VXLAN inside (UDP 4789)", func(s sender, m []byte) []byte { return s.datagram(s.ip4, s.other4, 1000, 4789, m) }),
		own("broadcast, UDP", func(s sender, m []byte) []byte { return s.datagram(s.ip4, all, 1000, 1000, m) }),
		own("multicast, UDP", func(s sender, m []byte) []byte { return s.datagram(s.ip4, addr("239.1.1.1"), 1000, 1000, m) }),
		own("multicast, UDP over IPv6", func(s sender, m []byte) []byte { return s.datagram(s.ip6, addr("ff05::1:3"), 1000, 1000, m) }),
		own("from its link-local address", func(s sender, m []byte) []byte { return s.datagram(s.link6, allNodes, 1000, 1000, m) }),
		own("DHCPv4, client", func(s sender, m []byte) []byte { return s.datagram(none4, all, 68, 67, m) }),
		own("DHCPv6, client", func(s sender, m []byte) []byte { return s.datagram(s.link6, addr("ff02::1:2"), 546, 547, m) }),
		own("ARP request", func(s sender, m []byte) []byte { return s.arp(1, s.mac, s.ip4, nobody4(s), broadcast, m) }),
		own("ARP reply", func(s sender, m []byte) []byte { return s.arp(2, s.mac, s.ip4, s.other4, s.otherMAC, m) }),
		own("gratuitous ARP", func(s sender, m []byte) []byte { return s.arp(1, s.mac, s.ip4, s.ip4, broadcast, m) }),
		own("ARP probe", func(s sender, m []byte) []byte { return s.arp(1, s.mac, none4, s.ip4, broadcast, m) }),
		own("neighbor solicitation", func(s sender, m []byte) []byte {
			return s.nd(135, s.ip6, solicits, nobody6(s), m, option(optionSource, s.mac))
		}),
		own("neighbor solicitation without option", func(s sender, m []byte) []byte { return s.nd(135, s.ip6, solicits, nobody6(s), m) }),
		own("duplicate address detection", func(s sender, m []byte) []byte { return s.nd(135, none6, solicits, s.ip6, m) }),
		own("duplicate address detection, link-local", func(s sender, m []byte) []byte { return s.nd(135, none6, solicits, s.link6, m) }),
		own("neighbor advertisement", func(s sender, m []byte) []byte {
			return s.nd(136, s.ip6, allNodes, s.ip6, m, option(optionTarget, s.mac))
		}),
		own("neighbor advertisement without option", func(s sender, m []byte) []byte { return s.nd(136, s.ip6, s.other6, s.ip6, m) }),
		own("router solicitation", func(s sender, m []byte) []byte { return s.icmp(133, s.link6, addr("ff02::2"), m) }),
		own("IGMP report", func(s sender, m []byte) []byte {
			record := slices.Concat([]byte{0, 0, 0, 1, 4, 2, 0, 0}, addr("239.1.1.1").AsSlice(), m) // the mark is its auxiliary data (RFC 3376 section 4.2)
			return s.igmp(0x22, addr("224.0.0.22"), record)
		}),
		own("MLD report", func(s sender, m []byte) []byte { return s.icmp(143, s.link6, addr("ff02::16"), m) }),
		own("MLD report without address", func(s sender, m []byte) []byte { return s.icmp(143, none6, addr("ff02::16"), m) }),
		own("fragment, first", func(s sender, m []byte) []byte {
			return part(s, s.ip4, fragment{0, true}, udpTo(s.ip4, s.other4, 1000, 1000, pad8(m)))
		}),
		own("fragment, later", func(s sender, m []byte) []byte { return part(s, s.ip4, fragment{4, false}, pad8(m)) }),
		own("fragment, overlapping", func(s sender, m []byte) []byte { return part(s, s.ip4, fragment{1, true}, pad8(m)) }),
		own("fragment, tiny", func(s sender, m []byte) []byte { return part(s, s.ip4, fragment{0, true}, pad8(m)[:8]) }),
		own("IPv4 option: record route", func(s sender, m []byte) []byte { return withOptions(s, m, 7) }),
		own("IPv4 option: loose source route", func(s sender, m []byte) []byte { return withOptions(s, m, 131) }),
		own("IPv6 routing header", func(s sender, m []byte) []byte {
			route := append([]byte{17, 2, 0, 1, 0, 0, 0, 0}, nobody6(s).AsSlice()...)
			return ethernet(s.otherMAC, s.mac, 0x86dd, ip6(s.ip6, s.other6, 43, 64, append(route, udpTo(s.ip6, s.other6, 1000, 1000, m)...)))
		}),

		foreign("another MAC", func(s sender, m []byte) []byte {
			f := s.datagram(s.ip4, s.other4, 1000, 1000, m)
			copy(f[6:], []byte{2, 0, 0, 0, 0, 9})
			return f
		}),
		foreign("the MAC of a neighbor", func(s sender, m []byte) []byte {
			f := s.datagram(s.ip4, all, 1000, 1000, m)
			copy(f[6:], s.otherMAC)
			return f
		}),
		foreign("a group's MAC as source", func(s sender, m []byte) []byte {
			f := s.datagram(s.ip4, s.other4, 1000, 1000, m)
			f[6] |= 1
			return f
		}),
		foreign("another IPv4 address", func(s sender, m []byte) []byte { return s.datagram(nobody4(s), s.other4, 1000, 1000, m) }),
		foreign("an IPv4 address of outside", func(s sender, m []byte) []byte { return s.datagram(addr("198.51.100.1"), s.other4, 1000, 1000, m) }),
		foreign("no IPv4 address, but not DHCP", func(s sender, m []byte) []byte { return s.datagram(none4, all, 1000, 1000, m) }),
		foreign("another IPv6 address", func(s sender, m []byte) []byte { return s.datagram(nobody6(s), s.other6, 1000, 1000, m) }),
		foreign("no IPv6 address", func(s sender, m []byte) []byte { return s.datagram(none6, allNodes, 1000, 1000, m) }),
		foreign("another link-local address", func(s sender, m []byte) []byte { return s.datagram(strange6, allNodes, 1000, 1000, m) }),
		foreign("fragment of another address", func(s sender, m []byte) []byte { return part(s, nobody4(s), fragment{4, false}, pad8(m)) }),
		foreign("ARP request for another", func(s sender, m []byte) []byte { return s.arp(1, s.mac, s.other4, nobody4(s), broadcast, m) }),
		foreign("ARP reply for another", func(s sender, m []byte) []byte { return s.arp(2, s.mac, nobody4(s), s.other4, s.otherMAC, m) }),
		foreign("gratuitous ARP for another", func(s sender, m []byte) []byte { return s.arp(1, s.mac, s.other4, s.other4, broadcast, m) }),
		foreign("ARP with another MAC inside", func(s sender, m []byte) []byte { return s.arp(2, s.otherMAC, s.ip4, s.other4, s.otherMAC, m) }),
		foreign("ARP probe of another's address", func(s sender, m []byte) []byte { return s.arp(1, s.mac, none4, s.other4, broadcast, m) }),
		foreign("neighbor solicitation, another MAC inside", func(s sender, m []byte) []byte {
			return s.nd(135, s.ip6, solicits, nobody6(s), m, option(optionSource, s.otherMAC))
		}),
		foreign("neighbor solicitation, option twice", func(s sender, m []byte) []byte {
			return s.nd(135, s.ip6, solicits, nobody6(s), m, option(optionSource, s.mac), option(optionSource, s.otherMAC))
		}),
		foreign("neighbor solicitation of another", func(s sender, m []byte) []byte {
			return s.nd(135, nobody6(s), solicits, s.other6, m, option(optionSource, s.mac))
		}),
		foreign("duplicate address detection of another's", func(s sender, m []byte) []byte { return s.nd(135, none6, solicits, s.other6, m) }),
		foreign("neighbor advertisement for another", func(s sender, m []byte) []byte {
			return s.nd(136, s.ip6, allNodes, s.other6, m, option(optionTarget, s.mac))
		}),
		foreign("neighbor advertisement, another MAC inside", func(s sender, m []byte) []byte {
			return s.nd(136, s.ip6, allNodes, s.ip6, m, option(optionTarget, s.otherMAC))
		}),
		foreign("neighbor advertisement, option twice", func(s sender, m []byte) []byte {
			return s.nd(136, s.ip6, allNodes, s.ip6, m, option(optionTarget, s.mac), option(optionTarget, s.otherMAC))
		}),
		foreign("neighbor advertisement for another link-local", func(s sender, m []byte) []byte {
			return s.nd(136, s.link6, allNodes, strange6, m, option(optionTarget, s.mac))
		}),
		foreign("router advertisement", func(s sender, m []byte) []byte { return s.icmp(134, s.link6, allNodes, m) }),
		foreign("redirect", func(s sender, m []byte) []byte { return s.icmp(137, s.link6, s.other6, m) }),
		foreign("IPv4 redirect", func(s sender, m []byte) []byte { return s.icmp4(s.other4, 5, m) }),
		foreign("IPv4 router advertisement", func(s sender, m []byte) []byte { return s.icmp4(addr("224.0.0.1"), 9, m) }),
		foreign("DHCPv4, server", func(s sender, m []byte) []byte { return s.datagram(s.ip4, all, 67, 68, m) }),
		foreign("DHCPv6, server", func(s sender, m []byte) []byte { return s.datagram(s.link6, allNodes, 547, 546, m) }),
		foreign("VRRP", func(s sender, m []byte) []byte { return s.proto(112, addr("224.0.0.18"), 255, m) }),
		foreign("OSPF", func(s sender, m []byte) []byte { return s.proto(89, addr("224.0.0.5"), 1, m) }),
		foreign("PIM", func(s sender, m []byte) []byte { return s.proto(103, addr("224.0.0.13"), 1, m) }),
		foreign("EIGRP", func(s sender, m []byte) []byte { return s.proto(88, addr("224.0.0.10"), 1, m) }),
		foreign("HSRP", func(s sender, m []byte) []byte { return s.datagram(s.ip4, addr("224.0.0.2"), 1985, 1985, m) }),
		foreign("RIP", func(s sender, m []byte) []byte { return s.datagram(s.ip4, addr("224.0.0.9"), 520, 520, m) }),
		foreign("IGMP query", func(s sender, m []byte) []byte { return s.igmp(0x11, addr("224.0.0.1"), append(make([]byte, 8), m...)) }),
		foreign("MLD query", func(s sender, m []byte) []byte { return s.icmp(130, s.link6, allNodes, m) }),
		foreign("VLAN tag", func(s sender, m []byte) []byte { return tagged(s, m, 101) }),
		foreign("two VLAN tags", func(s sender, m []byte) []byte { return tagged(s, m, 102, 101) }),
		foreign("priority tag", func(s sender, m []byte) []byte { return tagged(s, m, 0xe000) }),
		foreign("MPLS", func(s sender, m []byte) []byte { return ethernet(s.otherMAC, s.mac, 0x8847, []byte{0, 1, 1, 64}, m) }),
		foreign("PPPoE", func(s sender, m []byte) []byte {
			return ethernet(broadcast, s.mac, 0x8863, []byte{0x11, 9, 0, 0, 0, 8}, m)
		}),
		foreign("RARP", func(s sender, m []byte) []byte {
			return ethernet(broadcast, s.mac, 0x8035, []byte{0, 1, 8, 0, 6, 4, 0, 3}, s.mac, s.ip4.AsSlice(), s.mac, none4.AsSlice(), m)
		}),
		foreign("LLDP", func(s sender, m []byte) []byte {
			return ethernet(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0x0e}, s.mac, 0x88cc, []byte{2, 7, 4}, s.mac, m)
		}),
		foreign("STP", func(s sender, m []byte) []byte {
			return ethernet(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0}, s.mac, 46, []byte{0x42, 0x42, 3, 0, 0, 0, 0}, m)
		}),
		foreign("pause", func(s sender, m []byte) []byte {
			return ethernet(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 1}, s.mac, 0x8808, []byte{0, 1, 0xff, 0xff}, m)
		}),
		foreign("an ethertype of nobody's", func(s sender, m []byte) []byte { return ethernet(s.otherMAC, s.mac, 0x88b5, m) }),
	}
}

// pad8 makes the content of a fragment that is not the last.
func pad8(b []byte) []byte { return append(slices.Clone(b), make([]byte, (8-len(b)%8)%8)...) }

// withOptions is a datagram with an option that names one address (RFC 791).
func withOptions(s sender, mark []byte, typ byte) []byte {
	options := append([]byte{typ, 7, 4, 10, 9, 9, 9}, 0)
	return ethernet(s.otherMAC, s.mac, 0x0800, ip4(s.ip4, s.other4, 17, 64, fragment{}, options, udpTo(s.ip4, s.other4, 1000, 1000, mark)))
}
