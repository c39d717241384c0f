package drivers

import (
	"net/netip"
	"slices"
	"time"
)

// Service is a set of addresses behind which providers share a load. ServiceLB objects
// and Kubernetes Services are both declared as this.
type Service struct {
	ID     string // <service>:<tenant>, or <namespace>/<name>
	Tenant string // whose containers reach it; empty: those of every tenant
	// VIPs are where clients reach it, of both families: its own address, external
	// ones, those of load balancers.
	VIPs  []netip.Addr
	Ports []ServicePort
	// Affinity is how long after its last connection a client gets the same provider
	// again; 0: a provider is chosen for each connection.
	Affinity time.Duration
	// OnlyLocal forwards containers to providers of their own host only; without any, and
	// only then, clients are not told that nobody is there.
	OnlyLocal bool
}

// ServicePort is one port of a service.
type ServicePort struct {
	Name  string
	Proto uint8 // IP protocol: 6 TCP, 17 UDP, 132 SCTP
	Port  uint16
	// NodePort is where the service is reached at the addresses of hosts, 0 for not.
	NodePort  uint16
	Providers []ServiceProvider
}

// ServiceProvider is where connections to a port of a service lead.
type ServiceProvider struct {
	Addr   netip.AddrPort
	Tenant string // whose container it is; empty: reachable from every tenant
	Local  bool   // on this host
	// Draining keeps the connections there are, but takes no more. A provider that is
	// left out loses those it has.
	Draining bool
}

// Equal reports whether two declarations say the same.
func (s Service) Equal(o Service) bool {
	return s.ID == o.ID && s.Tenant == o.Tenant && s.Affinity == o.Affinity && s.OnlyLocal == o.OnlyLocal &&
		slices.Equal(s.VIPs, o.VIPs) && slices.EqualFunc(s.Ports, o.Ports, func(a, b ServicePort) bool {
		return a.Name == b.Name && a.Proto == b.Proto && a.Port == b.Port && a.NodePort == b.NodePort && slices.Equal(a.Providers, b.Providers)
	})
}

// ServiceCount is what one container of this host has exchanged with one provider of a
// port of a service.
type ServiceCount struct {
	Service  string // id
	Client   netip.Addr
	VIP      netip.AddrPort
	Provider netip.AddrPort
	Proto    uint8
	// From the provider, and to it.
	PacketsIn, BytesIn, PacketsOut, BytesOut uint64
}
