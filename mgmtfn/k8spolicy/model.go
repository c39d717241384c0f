package k8spolicy

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Key names a pod or a policy.
type Key struct{ Namespace, Name string }

func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Pod is what policies depend on of a pod.
type Pod struct {
	Key    Key
	UID    string // as the runtime knows it
	Labels labels.Set
	Tenant string // it asks for; empty: that of its namespace
	IPs    []netip.Addr
	Ports  []NamedPort
	// Outside says that policies do not see the pod: it uses the network of its host,
	// or has ended.
	Outside bool
}

func (p Pod) equal(o Pod) bool {
	return p.Key == o.Key && p.UID == o.UID && p.Tenant == o.Tenant && p.Outside == o.Outside &&
		maps.Equal(p.Labels, o.Labels) && slices.Equal(p.IPs, o.IPs) && slices.Equal(p.Ports, o.Ports)
}

// NamedPort is a port of a container that has a name.
type NamedPort struct {
	Name  string
	Proto uint8
	Port  uint16
}

// port finds a named port of a protocol.
func (p Pod) port(name string, proto uint8) (uint16, bool) {
	for _, n := range p.Ports {
		if n.Name == name && n.Proto == proto {
			return n.Port, true
		}
	}
	return 0, false
}

// Namespace is what policies depend on of a namespace.
type Namespace struct {
	Name   string
	Labels labels.Set
	Tenant string // of its pods; empty: they say it
}

// Policy is a NetworkPolicy.
type Policy struct {
	Key     Key
	Pods    labels.Selector // those it holds for, in its namespace
	Ingress Side
	Egress  Side
}

// Side is one direction of a policy.
type Side struct {
	Isolates bool
	Rules    []Rule
}

// Rule allows connections with any of the peers at any of the ports.
type Rule struct {
	AnyPeer bool
	Peers   []Peer
	AnyPort bool
	Ports   []Port
}

// Peer is a set of pods, or of addresses.
type Peer struct {
	Namespaces labels.Selector // nil: the policy's own namespace
	Pods       labels.Selector
	Blocks     []netip.Prefix // if not nil, addresses instead of pods; disjoint
}

// Port is a range of ports of a protocol, or the name of one.
type Port struct {
	Proto     uint8
	Name      string
	Low, High uint16
}
