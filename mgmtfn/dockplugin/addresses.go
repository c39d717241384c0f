package dockplugin

import (
	"net/netip"
	"sync"

	"github.com/contiv/netplugin/state/docknet"
)

// addresses remembers what became of the addresses that were handed out. An Engine gives
// an address back after it has deleted the endpoint, with which netmaster has freed the
// address already: by then it may be reserved for a container of another host.
type addresses struct {
	mu    sync.Mutex
	went  map[addressKey]bool // whether it went with its endpoint
	only4 map[string]struct{} // endpoints to which the Engine gives no IPv6 address
}

type addressKey struct {
	owner string // of the pool id
	addr  netip.Addr
}

func newAddresses() *addresses {
	return &addresses{went: map[addressKey]bool{}, only4: map[string]struct{}{}}
}

// handOut says that an address was handed out.
func (l *addresses) handOut(owner string, a netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.went[addressKey{owner, a}] = false
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
