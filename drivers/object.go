package drivers

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/ofnet/bgp"
)

// Kind is a kind of Object.
type Kind uint8

// The kinds of objects. Those marked with "one" have the empty id.
const (
	KindGlobal Kind = iota + 1 // one
	KindNetwork
	KindEndpoint
	KindRule
	KindService
	KindPolicyRuleSet
	KindEndpointPolicy // by endpoint id
	KindPolicyPeer     // by tenant and address
	KindSpeaker        // one
	KindClusterReach   // one
	KindHost           // by label
)

// Key names an object.
type Key struct {
	Kind Kind
	ID   string
}

// Object is what a Driver realises: one of the types of this package with a Key.
type Object interface {
	Key() Key
	object() // no others
}

// Source is somebody who declares objects, and knows all there are of its own.
type Source uint8

// The sources there may be. A driver waits for SourceStore and those it is told of.
const (
	SourceStore    Source = iota + 1 // all kinds
	SourceServices                   // the Services of Kubernetes
	SourcePolicies                   // the NetworkPolicies of Kubernetes: endpoint policies, their rule sets and peers
)

func (s Source) String() string {
	return [...]string{"none", "store", "services", "policies"}[s]
}

// Speaker is the BGP speaker of this host, which announces its containers on VLAN
// networks, and through whose routes they reach external networks.
type Speaker struct{ bgp.Config }

// ClusterReach has the host itself reach containers of other hosts too, where it knows
// containers by their addresses.
type ClusterReach struct {
	// Services are where addresses of services are that something on the host translates.
	Services []netip.Prefix
}

// Host is a host of the cluster, this one among them. Containers do not reach the control
// plane at its addresses, and of tunnels only those from hosts are let in.
type Host struct {
	Label     string
	VTEP      netip.Addr
	Addresses []netip.Addr // all that are known
}

// Equal reports whether two declarations say the same.
func (h Host) Equal(o Host) bool {
	return h.Label == o.Label && h.VTEP == o.VTEP && slices.Equal(h.Addresses, o.Addresses)
}

// Key implements Object.
func (h Host) Key() Key { return Key{KindHost, h.Label} }
func (Host) object()    {}

// Key implements Object.
func (Global) Key() Key { return Key{Kind: KindGlobal} }
func (Global) object()  {}

// Key implements Object.
func (n Network) Key() Key { return Key{KindNetwork, n.ID} }
func (Network) object()    {}

// Key implements Object.
func (e Endpoint) Key() Key { return Key{KindEndpoint, e.ID} }
func (Endpoint) object()    {}

// Key implements Object.
func (r Rule) Key() Key { return Key{KindRule, r.ID} }
func (Rule) object()    {}

// Key implements Object.
func (s Service) Key() Key { return Key{KindService, s.ID} }
func (Service) object()    {}

// Key implements Object.
func (p PolicyRuleSet) Key() Key { return Key{KindPolicyRuleSet, p.ID} }
func (PolicyRuleSet) object()    {}

// Key implements Object.
func (p PolicyPeer) Key() Key { return Key{KindPolicyPeer, p.Tenant + " " + p.Addr.String()} }
func (PolicyPeer) object()    {}

// Key implements Object.
func (e EndpointPolicy) Key() Key { return Key{KindEndpointPolicy, e.EndpointID} }
func (EndpointPolicy) object()    {}

// Key implements Object.
func (Speaker) Key() Key { return Key{Kind: KindSpeaker} }
func (Speaker) object()  {}

// Key implements Object.
func (ClusterReach) Key() Key { return Key{Kind: KindClusterReach} }
func (ClusterReach) object()  {}
