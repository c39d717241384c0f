package nodeproxy

import (
	"net/netip"
	"reflect"
	"time"
)

// Service is what a Service is to a node.
type Service struct {
	ID string // <namespace>/<name>
	// Affinity is how long after its last connection a client gets the same provider
	// again; 0: a provider is chosen for each connection.
	Affinity  time.Duration
	Frontends []Frontend
	// HealthPort is where load balancers ask the node, by HTTP, how many providers of its
	// own it has (Healthy of them); 0: nowhere.
	HealthPort uint16
	Healthy    int
}

// Frontend is an address and port under which a Service is reached.
type Frontend struct {
	Name  string // of the Service's port; frontends of one name share what affinity remembers
	Proto uint8  // IP protocol: 6 TCP, 17 UDP, 132 SCTP
	// Addr is where; an unspecified address stands for every address of the node of its
	// family, but for those of the loopback network.
	Addr netip.AddrPort
	// Inside are the backends for this node and containers, Outside those for everybody
	// else.
	Inside, Outside BackendSet
	// Sources are who is let in; nil: everybody.
	Sources []netip.Prefix
	// Keeps are providers that keep connections, whether or not they take new ones.
	// Datagrams to others are sent elsewhere at once.
	Keeps []netip.AddrPort
}

// BackendSet is where connections are translated to: each to one of the providers.
type BackendSet struct {
	Providers []netip.AddrPort // of the frontend's family
	// Silent has nothing answered when there are none. Clients are refused otherwise.
	Silent bool
}

// Equal reports whether two declarations say the same.
func (s Service) Equal(o Service) bool { return reflect.DeepEqual(s, o) }
