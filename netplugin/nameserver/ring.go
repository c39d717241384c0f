package nameserver

import (
	"net/netip"
	"sync/atomic"
)

// ring is a set of addresses, each of an owner, that are given out in turn. Adding,
// removing and taking cost the same for few and many.
type ring struct {
	owners []string
	addrs  []netip.Addr
	at     map[string]int // position by owner; nil while there are few
	next   atomic.Uint32
}

// few is how many owners are found faster by looking at all.
const few = 8

func (r *ring) find(owner string) int {
	if r.at != nil {
		if i, ok := r.at[owner]; ok {
			return i
		}
		return -1
	}
	for i, o := range r.owners {
		if o == owner {
			return i
		}
	}
	return -1
}

// add adds an address; an owner has one.
func (r *ring) add(owner string, a netip.Addr) {
	if i := r.find(owner); i >= 0 {
		r.addrs[i] = a
		return
	}
	r.owners, r.addrs = append(r.owners, owner), append(r.addrs, a)
	if r.at != nil {
		r.at[owner] = len(r.owners) - 1
	} else if len(r.owners) > few {
		r.at = make(map[string]int, 2*few)
		for i, o := range r.owners {
			r.at[o] = i
		}
	}
}

func (r *ring) remove(owner string) {
	i := r.find(owner)
	if i < 0 {
		return
	}
	last := len(r.owners) - 1
	r.owners[i], r.addrs[i] = r.owners[last], r.addrs[last]
	if r.at != nil {
		r.at[r.owners[i]] = i
		delete(r.at, owner)
	}
	r.owners[last] = ""
	r.owners, r.addrs = r.owners[:last], r.addrs[:last]
}

func (r *ring) len() int {
	if r == nil {
		return 0
	}
	return len(r.addrs)
}

// take returns up to n addresses, beginning one further with each call.
func (r *ring) take(n int) []netip.Addr {
	if r == nil || len(r.addrs) == 0 || n == 0 {
		return nil
	}
	n = min(n, len(r.addrs))
	start := int((r.next.Add(1) - 1) % uint32(len(r.addrs)))
	out := make([]netip.Addr, 0, n)
	for i := range n {
		out = append(out, r.addrs[(start+i)%len(r.addrs)])
	}
	return out
}
