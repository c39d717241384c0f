package contivmodel

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/utils/errs"
)

// ParseIP4 reads a dotted quad without leading zeros.
func ParseIP4(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Is4()
}

// ParseIP6 reads an IPv6 address in hex groups: no zone, no embedded dotted quad
// (RFC 4291 section 2.2, forms 1 and 2).
func ParseIP6(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Is6() && !a.Is4In6() && a.Zone() == "" && !strings.Contains(s, ".")
}

// ParseCIDR6 reads ADDRESS/LENGTH with a length of 1–127 and returns the masked prefix.
func ParseCIDR6(s string) (netip.Prefix, bool) {
	text, length, ok := strings.Cut(s, "/")
	a, good := ParseIP6(text)
	n, fine := prefixLen(length, 127)
	if !ok || !good || !fine {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, n).Masked(), true
}

// prefixLen reads a decimal of 1 to most without sign or leading zero.
func prefixLen(s string, most int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= most && strconv.Itoa(n) == s
}

// Range is a run of IPv4 addresses, both ends included.
type Range struct{ First, Last netip.Addr }

// Contains reports whether a lies in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.Is4() && r.First.Compare(a) <= 0 && a.Compare(r.Last) <= 0
}

// Overlaps reports whether the two ranges share an address.
func (r Range) Overlaps(o Range) bool {
	return r.First.Compare(o.Last) <= 0 && o.First.Compare(r.Last) <= 0
}

// String is first-last.
func (r Range) String() string { return r.First.String() + "-" + r.Last.String() }

// ParseRange reads FIRST-LAST, or one address as a range of itself. The ends are not
// compared: whether they are in order is the caller's question.
func ParseRange(s string) (Range, bool) {
	first, last, two := strings.Cut(s, "-")
	if !two {
		last = first
	}
	a, ok := ParseIP4(first)
	b, fine := ParseIP4(last)
	return Range{First: a, Last: b}, ok && fine
}

// Subnet is the IPv4 side of a network: a masked prefix and the part of it that the
// network may hand out addresses from.
type Subnet struct {
	Prefix netip.Prefix
	Range  Range // for a plain CIDR, everything from the network to the broadcast address
}

// subnetSyntax splits the two forms ADDRESS/LENGTH and FIRST-LAST/LENGTH.
func subnetSyntax(s string) (r Range, length int, isRange, ok bool) {
	text, tail, slash := strings.Cut(s, "/")
	length, fine := prefixLen(tail, 31)
	r, good := ParseRange(text)
	return r, length, strings.Contains(text, "-"), slash && fine && good
}

// IsSubnet reports whether s has one of the two forms of a subnet, with a prefix
// length of 1–31. ParseSubnet checks what the form cannot.
func IsSubnet(s string) bool {
	_, _, _, ok := subnetSyntax(s)
	return ok
}

// ParseSubnet reads the subnet of a network, ADDRESS/LENGTH or FIRST-LAST/LENGTH. Host
// bits of the first form are masked away. Refused, with an error of kind Invalid: a
// length below 8, a range that runs backwards or leaves its subnet.
func ParseSubnet(s string) (Subnet, error) {
	r, length, isRange, ok := subnetSyntax(s)
	switch {
	case !ok:
		return Subnet{}, errs.New(errs.Invalid, "Network subnet format not valid: %q", s)
	case length < 8:
		return Subnet{}, errs.New(errs.Invalid, "subnet length %d not supported: %q, expected 8 to 31", length, s)
	}
	p := netip.PrefixFrom(r.First, length).Masked()
	if !isRange {
		return Subnet{Prefix: p, Range: Range{First: p.Addr(), Last: lastOf(p)}}, nil
	}
	if r.First.Compare(r.Last) > 0 {
		return Subnet{}, errs.New(errs.Invalid, "Network subnet format not valid: range of %q runs backwards", s)
	}
	if !p.Contains(r.Last) {
		return Subnet{}, errs.New(errs.Invalid, "Network subnet format not valid: range of %q leaves subnet %s", s, p)
	}
	return Subnet{Prefix: p, Range: r}, nil
}

// lastOf returns the highest address of an IPv4 prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}
