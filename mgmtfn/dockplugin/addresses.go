package dockplugin

import (
	"net/netip"
	"sync"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// addresses remembers what became of the addresses that were handed out. An Engine gives
// an address back after it has deleted the endpoint, with which netmaster has freed the
// address already: by then it may be reserved for a container of another host. In a swarm
// nodes and the manager both give an address back, and only the manager's word counts.
type addresses struct {
	mu    sync.Mutex
	went  map[addressKey]bool // whether it went with its endpoint
	only4 map[string]struct{} // endpoints to which the Engine gives no IPv6 address

	// Endpoints that an agent made that was here before this one; nil until these are
	// known. Until then new are all others that have been heard of.
	earlier, new map[string]struct{}
}

type addressKey struct {
	owner string // of the pool id
	addr  netip.Addr
}

func newAddresses() *addresses {
	return &addresses{went: map[addressKey]bool{}, only4: map[string]struct{}{}, new: map[string]struct{}{}}
}

// handOut says that an address was handed out.
func (l *addresses) handOut(owner string, a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.went[addressKey{owner, a}] = false
}

// out reports whether an address was handed out and is still with the Engine.
func (l *addresses) out(owner string, a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	went, known := l.went[addressKey{owner, a}]
	return known && !went
}

// goWith says that an endpoint of a place is gone, with its addresses.
func (l *addresses) goWith(p docknet.Place, texts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, owner := range []string{ownerOf(p), p.NetworkID(), ""} {
			if _, ok := l.went[addressKey{owner, a}]; ok {
				l.went[addressKey{owner, a}] = true
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
	l.went[addressKey{owner, a}] = true
}

// giveBack forgets an address and reports whether it went with its endpoint.
func (l *addresses) giveBack(owner string, a netip.Addr) (went bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	went = l.went[addressKey{owner, a}]
	delete(l.went, addressKey{owner, a})
	return went
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
