package k8spolicy

import (
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// Declarer takes what Declare declares: a drivers.Driver.
type Declarer interface {
	Apply(drivers.Object)
	Delete(k drivers.Kind, id string)
}

// Declare declares what r says differently than before, which is the result of the compilation
// before it, and has been declared.
//
// Meanwhile every connection is allowed or denied by what either result says:
//   - a set that is there also gets the classes that are new, for what it has said of the
//     addresses that go to them
//   - then addresses change their classes
//   - then sets say what they are to say, and endpoint policies refer to them
//   - what nothing refers to goes last
func (r Result) Declare(to Declarer, before Result) {
	stretched := map[string]bool{}
	if r.movesPeers(before) {
		for id, old := range before.Sets {
			if s, more := r.stretch(old); more {
				to.Apply(s)
				stretched[id] = true
			}
		}
	}
	for at, class := range r.Peers {
		if before.Peers[at] != class {
			to.Apply(drivers.PolicyPeer{Tenant: at.Tenant, Addr: at.Addr, Class: class})
		}
	}
	for id, s := range r.Sets {
		if old, had := before.Sets[id]; !had || stretched[id] || !old.Equal(s) {
			to.Apply(s)
		}
	}
	for id, g := range r.EndpointPolicies {
		if old, ok := before.EndpointPolicies[id]; !ok || old != g {
			to.Apply(g)
		}
	}
	r.withdraw(to, before)
}

// withdraw takes back what r no longer says.
func (r Result) withdraw(to Declarer, before Result) {
	for id := range before.EndpointPolicies {
		if _, ok := r.EndpointPolicies[id]; !ok {
			to.Delete(drivers.KindEndpointPolicy, id)
		}
	}
	for id := range before.Sets {
		if _, ok := r.Sets[id]; !ok {
			to.Delete(drivers.KindPolicyRuleSet, id)
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

// stretch returns a set that also allows new classes: what it allows the class that they were
// part of, or what it is to allow them.
func (r Result) stretch(old drivers.PolicyRuleSet) (s drivers.PolicyRuleSet, more bool) {
	s, s.Allows = old, slices.Clone(old.Allows)
	for class, origin := range r.origins {
		for i, a := range s.Allows[:len(old.Allows)] {
			if origin != 0 && slices.Contains(old.Allows[i].Classes, origin) {
				s.Allows[i].Classes = append(slices.Clone(a.Classes), class)
				more = true
			}
		}
		for _, a := range r.Sets[old.ID].Allows {
			if origin == 0 && slices.Contains(a.Classes, class) {
				s.Allows = append(s.Allows, ofnet.Allow{Classes: []uint32{class}, Ports: a.Ports, Name: a.Name})
				more = true
			}
		}
	}
	return s, more
}
