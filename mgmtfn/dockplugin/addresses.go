package dockplugin

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/contiv/netplugin/state"
)

// addresses records what became of the addresses that were handed out. An Engine releases
// an address after it has deleted the endpoint, with which netmaster has freed the address
// already: by then it may be reserved for another container, on this host or another. In a
// swarm both nodes and the manager release an address, and only the manager's release
// counts.
type addresses struct {
	mu    sync.Mutex
	out   map[addressKey][]grant // oldest first; the Engine will release each
	only4 map[string]struct{}    // endpoints to which the Engine assigns no IPv6 address

	// Endpoints made by an earlier agent; nil until these are known. Until then new are
	// all others that have been seen.
	earlier, new map[string]struct{}
}

type addressKey struct {
	owner string // of the pool id
	addr  netip.Addr
}

// grant is one handing out of an address.
type grant struct {
	reservation string // its name at netmaster; empty if it has none
	went        bool   // released with its endpoint, or not ours to release
}

// maxGrants limits the grants per address: an Engine that was killed between the deletion
// of an endpoint and the release never makes that release.
const maxGrants = 4

func newAddresses() *addresses {
	return &addresses{out: map[addressKey][]grant{}, only4: map[string]struct{}{}, new: map[string]struct{}{}}
}

// handOut records that an address was handed out.
func (l *addresses) handOut(owner string, a netip.Addr, reservation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(addressKey{owner, a}, grant{reservation: reservation})
}

func (l *addresses) add(k addressKey, g grant) {
	if len(l.out[k]) == maxGrants {
		l.out[k] = l.out[k][1:]
	}
	l.out[k] = append(l.out[k], g)
}

// isOut reports whether an address was handed out and not released yet.
func (l *addresses) isOut(owner string, a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.out[addressKey{owner, a}], func(g grant) bool { return !g.went })
}

// goWith records that an endpoint of a network was deleted, with its addresses.
func (l *addresses) goWith(p state.NetworkRef, texts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, owner := range []string{ownerOf(p), p.NetworkID(), ""} {
			grants := l.out[addressKey{owner, a}]
			if i := slices.IndexFunc(grants, func(g grant) bool { return !g.went }); i >= 0 {
				grants[i].went = true
			}
		}
	}
}

// found records which endpoints exist when the agent first knows them.
func (l *addresses) found(all []state.Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earlier != nil {
		return
	}
	l.earlier = map[string]struct{}{}
	for _, ep := range all {
		if _, ours := l.new[ep.EndpointID]; !ours {
			l.earlier[ep.EndpointID] = struct{}{}
		}
	}
	l.new = nil
}

// made records that this agent creates an endpoint.
func (l *addresses) made(endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earlier == nil {
		l.new[endpoint] = struct{}{}
	}
}

// inherited reports, only once, whether an endpoint was created by an earlier agent.
func (l *addresses) inherited(endpoint string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earlier == nil {
		_, ours := l.new[endpoint]
		l.new[endpoint] = struct{}{}
		return !ours
	}
	_, ok := l.earlier[endpoint]
	delete(l.earlier, endpoint)
	return ok
}

// borrow records that the manager of a swarm has handed out an address, and will release
// it.
func (l *addresses) borrow(owner string, a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A repeated call still means one release.
	if k := (addressKey{owner, a}); !slices.ContainsFunc(l.out[k], func(g grant) bool { return g.went }) {
		l.add(k, grant{went: true})
	}
}

// giveBack removes and returns the oldest grant of an address. The Engine does not say
// which of its releases belongs to which grant, but it makes one for each: with the last
// one the last reservation ends.
func (l *addresses) giveBack(owner string, a netip.Addr) (g grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := addressKey{owner, a}
	grants := l.out[k]
	if len(grants) == 0 {
		return grant{}
	}
	if l.out[k] = grants[1:]; len(grants) == 1 {
		delete(l.out, k)
	}
	return grants[0]
}

// note6 records whether the Engine assigns an IPv6 address to an endpoint. Containers may
// have IPv6 disabled; then they could not reach a gateway.
func (l *addresses) note6(endpoint string, given bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.only4, endpoint)
	if !given {
		l.only4[endpoint] = struct{}{}
	}
}

// without6 reports whether an endpoint is known to have no IPv6 address.
func (l *addresses) without6(endpoint string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.only4[endpoint]
	return ok
}
