package k8spolicy

import (
	"slices"

	"github.com/contiv/netplugin/drivers"
)

// Declarer takes what Declare declares: a drivers.Driver.
type Declarer interface {
	Apply(drivers.Object)
	Delete(k drivers.Kind, id string)
}

// Declare declares what r says differently than before, which is what has been declared.
//
// A set and the peers in its classes are declared before an endpoint policy refers to it, and
// deleted after. A peer that goes from one class to another is allowed meanwhile what either
// result allows: while any does, changed sets also say what they said before.
func (r Result) Declare(to Declarer, before Result) {
	both := r.movesPeers(before)
	for id, s := range r.Sets {
		old, had := before.Sets[id]
		switch {
		case had && old.Equal(s):
		case had && both:
			to.Apply(union(s, old))
		default:
			to.Apply(s)
		}
	}
	for at, class := range r.Peers {
		if before.Peers[at] != class {
			to.Apply(drivers.PolicyPeer{Tenant: at.Tenant, Addr: at.Addr, Class: class})
		}
	}
	for id, g := range r.EndpointPolicies {
		if old, ok := before.EndpointPolicies[id]; !ok || old != g {
			to.Apply(g)
		}
	}
	for id := range before.EndpointPolicies {
		if _, ok := r.EndpointPolicies[id]; !ok {
			to.Delete(drivers.KindEndpointPolicy, id)
		}
	}
	for id, old := range before.Sets {
		s, still := r.Sets[id]
		switch {
		case !still:
			to.Delete(drivers.KindPolicyRuleSet, id)
		case both && !old.Equal(s):
			to.Apply(s)
		}
	}
	for at, class := range before.Peers {
		if _, still := r.Peers[at]; !still {
			to.Delete(drivers.KindPolicyPeer, drivers.PolicyPeer{Tenant: at.Tenant, Addr: at.Addr, Class: class}.Key().ID)
		}
	}
}

// movesPeers reports whether an address is in another class than before.
func (r Result) movesPeers(before Result) bool {
	for at, class := range before.Peers {
		if now, still := r.Peers[at]; still && now != class {
			return true
		}
	}
	return false
}

// union allows what either set does.
func union(s, old drivers.PolicyRuleSet) drivers.PolicyRuleSet {
	s.Allows = slices.Concat(s.Allows, old.Allows)
	return s
}
