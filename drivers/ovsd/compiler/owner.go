package compiler

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// defaultTenant is the tenant that exists from the start.
const defaultTenant = "default"

// ownerTable knows which container owns each address on this host. Tenants may use the same
// addresses: then the default tenant's container owns it, or else that of the first tenant
// by name; the host reaches the others at their private addresses. Protected by the
// driver's lock.
type ownerTable struct {
	claims map[netip.Addr]map[string]string // tenant by endpoint id
	by     map[string]claimant              // by endpoint id
}

type claimant struct {
	tenant string
	addrs  [2]netip.Addr // zero: none
}

func newOwnerTable() ownerTable {
	return ownerTable{claims: map[netip.Addr]map[string]string{}, by: map[string]claimant{}}
}

// put sets the addresses of an endpoint here, the zero claimant for none, and returns the
// endpoints that own more or fewer addresses because of it.
func (t ownerTable) put(id string, now claimant) (changed []string) {
	before := t.by[id]
	if before == now {
		return nil
	}
	winners := map[netip.Addr]string{}
	for _, a := range append(before.addrs[:], now.addrs[:]...) {
		winners[a] = t.winner(a)
	}
	for _, a := range before.addrs {
		if delete(t.claims[a], id); len(t.claims[a]) == 0 {
			delete(t.claims, a)
		}
	}
	for _, a := range now.addrs {
		if !a.IsValid() {
			continue
		}
		if t.claims[a] == nil {
			t.claims[a] = map[string]string{}
		}
		t.claims[a][id] = now.tenant
	}
	if t.by[id] = now; now == (claimant{}) {
		delete(t.by, id)
	}
	for a, was := range winners {
		if is := t.winner(a); is != was {
			for _, x := range []string{was, is} {
				if x != "" {
					changed = append(changed, x)
				}
			}
		}
	}
	return changed
}

// winner is the endpoint that owns an address, or "".
func (t ownerTable) winner(a netip.Addr) string {
	best, tenant := "", ""
	for id, of := range t.claims[a] {
		if best == "" || before(of, id, tenant, best) {
			best, tenant = id, of
		}
	}
	return best
}

// winners lists, for each address, the endpoint that owns it.
func (t ownerTable) winners() map[netip.Addr]string {
	out := make(map[netip.Addr]string, len(t.claims))
	for a := range t.claims {
		out[a] = t.winner(a)
	}
	return out
}

func before(tenant1, id1, tenant2, id2 string) bool {
	rank := func(t string) int {
		if t == defaultTenant {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(tenant1), rank(tenant2)), cmp.Compare(tenant1, tenant2), cmp.Compare(id1, id2)) < 0
}

func (t ownerTable) is(id string, a netip.Addr) bool { return a.IsValid() && t.winner(a) == id }

// AddressOwners returns the owner of each address of this host's containers.
func (c *Compiler) AddressOwners() map[netip.Addr]string { return c.owners.winners() }

// IsPeer reports whether a tunnel address is another host's.
func (c *Compiler) IsPeer(addr string) bool { return c.peers[addr] > 0 }

// Peers lists the tunnel addresses of the other hosts.
func (c *Compiler) Peers() []string { return slices.Collect(maps.Keys(c.peers)) }
