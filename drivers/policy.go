package drivers

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/ofnet"
)

// PolicyRuleSet lists connections that are allowed, in one direction.
type PolicyRuleSet struct {
	ID     string
	Out    bool // for connections that endpoints open; else for those to them
	Allows []ofnet.Allow
	// Policies are the NetworkPolicies that the set is made from, for logs. Its id tells
	// them too.
	Policies []string
}

// Equal reports whether two declarations say the same.
func (s PolicyRuleSet) Equal(o PolicyRuleSet) bool {
	return s.ID == o.ID && s.Out == o.Out && slices.EqualFunc(s.Allows, o.Allows, ofnet.Allow.Equal)
}

// PolicyPeer says which class an address is in for endpoints of a tenant, as rule sets allow
// classes of peers.
type PolicyPeer struct {
	Tenant string
	Addr   netip.Addr
	Class  uint32 // not 0
}

// EndpointPolicy names the sets for connections to an endpoint, and for those that it opens. An
// empty name allows everything; a set that is not declared, nothing. What endpoints
// exchange with their own host is always allowed.
type EndpointPolicy struct {
	EndpointID string
	In, Out    string
}
