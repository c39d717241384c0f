package intent

import (
	"net/netip"
	"slices"
	"sort"

	"github.com/contiv/netplugin/netmaster/ipam"
)

// extent is a range of addresses of one family that a network occupies, both ends included.
type extent struct {
	first, last netip.Addr
	network     string
	reach       netip.Addr // the highest last of this and all extents before it
}

// extents is what the networks of a tenant occupy, sorted by first address; IPv4 comes
// before IPv6. Finding overlaps takes logarithmic time. The extents may overlap: a store
// may have been edited by hand.
type extents []extent

// overlap names a network that occupies an address of first–last.
func (e extents) overlap(first, last netip.Addr) (network string, found bool) {
	i := sort.Search(len(e), func(i int) bool { return e[i].first.Compare(last) > 0 }) - 1
	if i < 0 || e[i].reach.Less(first) {
		return "", false
	}
	for e[i].last.Less(first) { // stops because some last up to here is at least first
		i--
	}
	return e[i].network, true
}

// add adds first–last.
func (e *extents) add(first, last netip.Addr, network string) {
	i := sort.Search(len(*e), func(i int) bool { return (*e)[i].first.Compare(first) > 0 })
	*e = slices.Insert(*e, i, extent{first: first, last: last, network: network})
	e.setReach(i)
}

// remove removes a network's extent that begins at first.
func (e *extents) remove(first netip.Addr, network string) {
	i := slices.IndexFunc(*e, func(x extent) bool { return x.first == first && x.network == network })
	if i >= 0 {
		*e = slices.Delete(*e, i, i+1)
		e.setReach(i)
	}
}

// setReach updates reach from i on.
func (e extents) setReach(i int) {
	for j := i; j < len(e); j++ {
		reach := e[j].last
		if j > 0 && reach.Less(e[j-1].reach) {
			reach = e[j-1].reach
		}
		if j > i && e[j].reach == reach {
			return // nothing after it has changed
		}
		e[j].reach = reach
	}
}

// lastOf is the highest address of a prefix of either family.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// openSpace creates a network's address space.
func (m *model) openSpace(tenant, id, network string, s *ipam.Space) {
	m.spaces[id] = s
	e := m.extentsOf[tenant]
	if e == nil {
		e = new(extents)
		m.extentsOf[tenant] = e
	}
	cfg := s.Config()
	e.add(cfg.Subnet.Range.First, cfg.Subnet.Range.Last, network)
	if cfg.Subnet6.IsValid() {
		e.add(cfg.Subnet6.Addr(), lastOf(cfg.Subnet6), network)
	}
}

// closeSpace removes and returns it.
func (m *model) closeSpace(tenant, id, network string) *ipam.Space {
	s, e := m.spaces[id], m.extentsOf[tenant]
	if s == nil {
		return nil
	}
	delete(m.spaces, id)
	if e == nil {
		return s
	}
	cfg := s.Config()
	e.remove(cfg.Subnet.Range.First, network)
	if cfg.Subnet6.IsValid() {
		e.remove(cfg.Subnet6.Addr(), network)
	}
	if len(*e) == 0 {
		delete(m.extentsOf, tenant)
	}
	return s
}
