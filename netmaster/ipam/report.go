package ipam

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
)

// Report lists which addresses of a subnet's range are claimed and which are free:
// ascending, runs collapsed to first-last, joined by ", ". The network and the broadcast
// address are in neither list. taken may be in any order and overlap; it is sorted in
// place.
func Report(subnet contivmodel.Subnet, taken []contivmodel.Range) (allocated, available string) {
	s := New(Config{Subnet: subnet})
	low, high, ok := s.bounds()
	if !ok {
		return "", ""
	}
	slices.SortFunc(taken, func(a, b contivmodel.Range) int { return a.First.Compare(b.First) })
	var in, out runs
	next := low // the lowest number not accounted for
	for _, r := range taken {
		if r.Last.Compare(s.addr(next)) < 0 || r.First.Compare(s.addr(high)) > 0 {
			continue
		}
		first, last := max(next, s.host(maxAddr(r.First, s.addr(low)))), min(high, s.host(r.Last))
		if first > next {
			out.add(s.addr(next), s.addr(first-1))
		}
		in.add(s.addr(first), s.addr(last))
		next = last + 1
	}
	if next <= high {
		out.add(s.addr(next), s.addr(high))
	}
	return in.String(), out.String()
}

// runs is an ascending list of runs; adjacent ones are merged.
type runs []contivmodel.Range

func (r *runs) add(first, last netip.Addr) {
	if n := len(*r); n > 0 && (*r)[n-1].Last.Next() == first {
		(*r)[n-1].Last = last
		return
	}
	*r = append(*r, contivmodel.Range{First: first, Last: last})
}

func (r runs) String() string {
	words := make([]string, len(r))
	for i, x := range r {
		if words[i] = x.String(); x.First == x.Last {
			words[i] = x.First.String()
		}
	}
	return strings.Join(words, ", ")
}
