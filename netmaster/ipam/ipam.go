// Package ipam knows which addresses of a network are free. A Space is an index over
// the address claims of one network, which stand in the store as one key each; it
// holds no truth of its own and is rebuilt from the claims by every new leader.
//
// Searching costs the same in a /29 and a /8, full or empty, and a Space takes memory
// for claimed neighborhoods only.
//
// IPv4: the lowest free address first. IPv6: the one after the last handed out, so
// that an address comes round again as late as possible. A pool is a run of IPv4
// addresses set aside for one endpoint group: nobody else gets them, and the group
// gets no others.
package ipam

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/sparse"
)

// Config says what a network's addresses are.
type Config struct {
	Name    string             // names the network in error texts
	Subnet  contivmodel.Subnet // IPv4; always present
	Subnet6 netip.Prefix       // masked; the zero Prefix when the network has no IPv6
}

// Space is the index of one network's claimed addresses. Not safe for concurrent use.
type Space struct {
	cfg   Config
	base  uint64      // number of the subnet's first address
	used  *sparse.Set // claimed IPv4 addresses, by host number
	used6 map[netip.Addr]struct{}
	last6 netip.Addr // the IPv6 address handed out last
	pools []Pool     // by first address
}

// Pool is a run of addresses set aside for one owner.
type Pool struct {
	Owner string // as in the claim, "group/<id>"
	Range contivmodel.Range
}

// New returns a Space in which every usable address is free.
func New(cfg Config) *Space {
	return &Space{
		cfg:   cfg,
		base:  number(cfg.Subnet.Prefix.Addr()),
		used:  sparse.New(1 << (32 - cfg.Subnet.Prefix.Bits())),
		used6: map[netip.Addr]struct{}{},
	}
}

// Config returns what the Space was made from.
func (s *Space) Config() Config { return s.cfg }

// Check returns why addr can never be handed out: it is outside the subnet, outside the
// network's range, or the network or broadcast address (for IPv6, the subnet-router anycast
// address, RFC 4291 section 2.6.1). Kind Invalid.
func (s *Space) Check(addr netip.Addr) error {
	if s.usable(addr) {
		return nil
	}
	if addr.Is6() && !s.cfg.Subnet6.IsValid() {
		return errs.New(errs.Invalid, "requested address is out of range: %s, network %s has no IPv6 subnet", addr, s.cfg.Name)
	}
	if addr.Is6() {
		return errs.New(errs.Invalid, "requested address is out of range: %s is no host address of %s in network %s",
			addr, s.cfg.Subnet6, s.cfg.Name)
	}
	return errs.New(errs.Invalid, "requested address is out of range: %s is no host address of %s (%s) in network %s",
		addr, s.cfg.Subnet.Prefix, s.cfg.Subnet.Range, s.cfg.Name)
}

func (s *Space) usable(addr netip.Addr) bool {
	if addr.Is6() {
		return s.cfg.Subnet6.IsValid() && s.cfg.Subnet6.Contains(addr) && addr != s.cfg.Subnet6.Addr()
	}
	low, high, ok := s.bounds()
	return ok && addr.Is4() && low <= s.host(addr) && s.host(addr) <= high && s.cfg.Subnet.Prefix.Contains(addr)
}

// bounds returns the lowest and highest usable host number, false when there is none.
func (s *Space) bounds() (low, high uint64, ok bool) {
	low = max(1, s.host(s.cfg.Subnet.Range.First))
	high = min(s.used.Size()-2, s.host(s.cfg.Subnet.Range.Last))
	return low, high, low <= high
}

// Taken reports whether addr is claimed.
func (s *Space) Taken(addr netip.Addr) bool {
	if addr.Is4() {
		return s.cfg.Subnet.Prefix.Contains(addr) && s.used.Has(s.host(addr))
	}
	_, ok := s.used6[addr]
	return ok
}

// Len returns how many addresses are claimed, of both families.
func (s *Space) Len() int { return s.used.Len() + len(s.used6) }

// Take claims addr and reports whether it was free. Any address of the network's prefixes
// can be claimed; Check says whether it may be handed out.
func (s *Space) Take(addr netip.Addr) bool {
	switch {
	case addr.Is4():
		return s.cfg.Subnet.Prefix.Contains(addr) && s.used.Add(s.host(addr))
	case !s.cfg.Subnet6.IsValid() || !s.cfg.Subnet6.Contains(addr) || s.Taken(addr):
		return false
	}
	s.used6[addr] = struct{}{}
	return true
}

// Free frees addr and reports whether it was claimed.
func (s *Space) Free(addr netip.Addr) bool {
	if addr.Is4() {
		return s.cfg.Subnet.Prefix.Contains(addr) && s.used.Remove(s.host(addr))
	}
	if !s.Taken(addr) {
		return false
	}
	delete(s.used6, addr)
	return true
}

// Next4 returns the lowest free IPv4 address: of the owner's pool if it has one, or else of
// the network outside all pools. It does not claim it. Kind Exhausted if there is none.
func (s *Space) Next4(owner string) (netip.Addr, error) {
	for _, p := range s.pools {
		if p.Owner != owner {
			continue
		}
		if h, ok := s.used.NextFree(s.host(p.Range.First)); ok && h <= s.host(p.Range.Last) {
			return s.addr(h), nil
		}
		return netip.Addr{}, errs.New(errs.Exhausted, "auto allocation failed - address exhaustion in pool %s of network %s",
			p.Range, s.cfg.Name)
	}
	low, high, ok := s.bounds()
	for at := low; ok; {
		h, found := s.used.NextFree(at)
		if !found || h > high {
			break
		}
		p, inside := s.PoolOf(s.addr(h))
		if !inside {
			return s.addr(h), nil
		}
		at = s.host(p.Range.Last) + 1
	}
	return netip.Addr{}, errs.New(errs.Exhausted, "auto allocation failed - address exhaustion in subnet %s of network %s",
		s.cfg.Subnet.Prefix, s.cfg.Name)
}

// Last6 returns the IPv6 address that was handed out last.
func (s *Space) Last6() netip.Addr { return s.last6 }

// SetLast6 sets it.
func (s *Space) SetLast6(addr netip.Addr) { s.last6 = addr }

// Next6 returns the first free IPv6 address after the last one handed out, wrapping around
// at the end of the prefix. It does not claim it. Kind Exhausted if there is none. The cost
// is the number of consecutive claimed addresses it must skip, which is zero until the
// search has wrapped around.
func (s *Space) Next6() (netip.Addr, error) {
	p := s.cfg.Subnet6
	if !p.IsValid() {
		return netip.Addr{}, errs.New(errs.Invalid, "network %s has no IPv6 subnet", s.cfg.Name)
	}
	at := p.Addr()
	if p.Contains(s.last6) {
		at = s.last6
	}
	// Every step but two (the start, the wrap-around) skips another claimed address.
	for range len(s.used6) + 2 {
		if at = at.Next(); !p.Contains(at) {
			at = p.Addr().Next()
		}
		if !s.Taken(at) {
			return at, nil
		}
	}
	return netip.Addr{}, errs.New(errs.Exhausted, "auto allocation failed - address exhaustion in subnet %s of network %s",
		p, s.cfg.Name)
}

// PoolOf returns the pool that addr lies in.
func (s *Space) PoolOf(addr netip.Addr) (Pool, bool) {
	i, exact := slices.BinarySearchFunc(s.pools, addr, func(p Pool, a netip.Addr) int { return p.Range.First.Compare(a) })
	if !exact {
		i--
	}
	if i < 0 || !s.pools[i].Range.Contains(addr) {
		return Pool{}, false
	}
	return s.pools[i], true
}

// HasPool reports whether owner has a pool.
func (s *Space) HasPool(owner string) bool {
	return slices.ContainsFunc(s.pools, func(p Pool) bool { return p.Owner == owner })
}

// CheckPool returns why r cannot become a pool: it is reversed, contains addresses that can
// never be handed out, or one that is claimed or in another pool.
func (s *Space) CheckPool(r contivmodel.Range) error {
	switch {
	case r.First.Compare(r.Last) > 0:
		return errs.New(errs.Invalid, "ipPool %s runs backwards", r)
	case !s.usable(r.First):
		return errs.New(errs.Invalid, "ip address %s is not available: %w", r.First, s.Check(r.First))
	case !s.usable(r.Last):
		return errs.New(errs.Invalid, "ip address %s is not available: %w", r.Last, s.Check(r.Last))
	}
	if h, ok := s.used.Next(s.host(r.First)); ok && h <= s.host(r.Last) {
		return errs.New(errs.Conflict, "ip address %s is not available: it is in use in network %s", s.addr(h), s.cfg.Name)
	}
	for _, p := range s.pools {
		if p.Range.Overlaps(r) {
			return errs.New(errs.Conflict, "ip address %s is not available: pool %s of %s has it",
				maxAddr(p.Range.First, r.First), p.Range, p.Owner)
		}
	}
	return nil
}

// AddPool reserves a range of addresses. The caller has called CheckPool.
func (s *Space) AddPool(p Pool) {
	i, _ := slices.BinarySearchFunc(s.pools, p, func(a, b Pool) int { return a.Range.First.Compare(b.Range.First) })
	s.pools = slices.Insert(s.pools, i, p)
}

// RemovePool returns the addresses of a pool to the network.
func (s *Space) RemovePool(owner string) {
	s.pools = slices.DeleteFunc(s.pools, func(p Pool) bool { return p.Owner == owner })
}

// number is an IPv4 address as an integer.
func number(a netip.Addr) uint64 {
	b := a.As4()
	return uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
}

// host is the host number of an IPv4 address; huge if it is below the subnet.
func (s *Space) host(a netip.Addr) uint64 { return number(a) - s.base }

// addr is the address of a host number.
func (s *Space) addr(host uint64) netip.Addr {
	n := s.base + host
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func maxAddr(a, b netip.Addr) netip.Addr {
	if a.Compare(b) > 0 {
		return a
	}
	return b
}
