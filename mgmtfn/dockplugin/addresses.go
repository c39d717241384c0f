package dockplugin

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/contiv/netplugin/state"
)

// addresses remembers what became of the addresses that were handed out. An Engine gives
// an address back after it has deleted the endpoint, with which netmaster has freed the
// address already: by then it may be reserved for another container, of this host or another.
// In a swarm nodes and the manager both give an address back, and only the manager's word
// counts.
type addresses struct {
	mu    sync.Mutex
	out   map[addressKey][]grant // oldest first; the Engine has as many releases to make
	only4 map[string]struct{}    // endpoints to which the Engine gives no IPv6 address

	// Endpoints that an agent made that was here before this one; nil until these are
	// known. Until then new are all others that have been heard of.
	earlier, new map[string]struct{}
}

type addressKey struct {
	owner string // of the pool id
	addr  netip.Addr
}

// grant is an address as it was handed out once.
type grant struct {
	reservation string // its name at netmaster; empty when it has none
	went        bool   // with its endpoint, or it is not ours to give back
}

// maxGrants bounds what is remembered of one address: an Engine that was killed between the
// end of an endpoint and the release never makes that release.
const maxGrants = 4

func newAddresses() *addresses {
	return &addresses{out: map[addressKey][]grant{}, only4: map[string]struct{}{}, new: map[string]struct{}{}}
}

// handOut says that an address was handed out.
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

// isOut reports whether an address was handed out and is still with the Engine.
func (l *addresses) isOut(owner string, a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.out[addressKey{owner, a}], func(g grant) bool { return !g.went })
}

// goWith says that an endpoint of a network is gone, with its addresses.
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

// found says which endpoints there are when the agent knows them first.
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

// made says that this agent makes an endpoint.
func (l *addresses) made(endpoint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.earlier == nil {
		l.new[endpoint] = struct{}{}
	}
}

// inherited reports, once, whether an endpoint was made by an earlier agent.
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

// borrow says that the manager of a swarm has handed an address out, and gives it back.
func (l *addresses) borrow(owner string, a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The same word twice still means one release.
	if k := (addressKey{owner, a}); !slices.ContainsFunc(l.out[k], func(g grant) bool { return g.went }) {
		l.add(k, grant{went: true})
	}
}

// giveBack forgets what was handed out first under an address, and returns it. The Engine
// does not say which of its releases is whose, but it makes one for each grant: with the
// last one the last reservation ends.
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

// note6 says whether the Engine gives an endpoint an IPv6 address. Containers may have
// IPv6 switched off; a gateway would not be in their reach.
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
