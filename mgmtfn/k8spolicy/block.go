package k8spolicy

import (
	"net/netip"
	"slices"
)

// subtract returns disjoint prefixes that cover p without what except covers; never nil.
func subtract(p netip.Prefix, except []netip.Prefix) []netip.Prefix {
	overlap := slices.DeleteFunc(slices.Clone(except), func(e netip.Prefix) bool { return !e.Overlaps(p) })
	switch {
	case len(overlap) == 0:
		return []netip.Prefix{p}
	case slices.ContainsFunc(overlap, func(e netip.Prefix) bool { return e.Bits() <= p.Bits() }):
		return []netip.Prefix{}
	}
	low, high := halves(p)
	return append(subtract(low, overlap), subtract(high, overlap)...)
}

// halves splits a prefix that is more than one address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	n := p.Bits()
	low = netip.PrefixFrom(p.Addr(), n+1)
	b := p.Addr().AsSlice()
	b[n/8] |= 0x80 >> (n % 8)
	a, _ := netip.AddrFromSlice(b) // of the length it had
	return low, netip.PrefixFrom(a, n+1)
}
