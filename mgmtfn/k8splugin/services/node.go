package services

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/nodeproxy"
)

// NodeProxy receives the Services that this node load-balances.
type NodeProxy interface {
	Set(nodeproxy.Service)
	Remove(id string)
	// Release says that every Service has been declared.
	Release()
}

// onNode translates a Service for connections that begin at this node or come from outside;
// ok is false if there is nothing to do. The node knows addresses, not tenants: of pods
// with the same address it reaches that of the tenant that owns the address.
func onNode(s *corev1.Service, all []*discoveryv1.EndpointSlice, env surroundings) (out nodeproxy.Service, ok bool) {
	if !ours(s) {
		return out, false
	}
	out = nodeproxy.Service{ID: s.Namespace + "/" + s.Name, Affinity: affinity(s)}
	localInside := s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	localOutside := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	fronts := frontsOf(s)
	healthy := map[string]bool{} // of this node; terminating ones get no new connections from outside
	for _, p := range s.Spec.Ports {
		proto, known := protocol(p.Protocol)
		if !known || p.Port < 1 || p.Port > 65535 {
			continue
		}
		found := reachable(candidates(p.Name, proto, all, env), env)
		every, local := backends(found, proto, env)
		for _, c := range found {
			if c.Local && c.ready {
				healthy[c.who] = true
			}
		}
		for _, f := range fronts {
			frontend := nodeproxy.Frontend{Name: p.Name, Proto: proto, Addr: netip.AddrPortFrom(f.addr, uint16(p.Port)), Sources: f.sources}
			if f.addr.IsUnspecified() {
				if p.NodePort == 0 {
					continue
				}
				frontend.Addr = netip.AddrPortFrom(f.addr, uint16(p.NodePort))
			}
			here, anywhere := local.of(f.addr), every.of(f.addr)
			cluster, node := nodeproxy.BackendSet{Providers: anywhere}, nodeproxy.BackendSet{Providers: here, Silent: len(anywhere) > 0}
			frontend.Inside, frontend.Outside = cluster, cluster
			switch {
			case f.external && localOutside:
				frontend.Outside = node
			case !f.external && localInside:
				frontend.Inside, frontend.Outside = node, node
			}
			frontend.Keeps = every.keeps(f.addr)
			out.Frontends = append(out.Frontends, frontend)
		}
	}
	if localOutside && s.Spec.HealthCheckNodePort > 0 {
		out.HealthPort, out.Healthy = uint16(s.Spec.HealthCheckNodePort), len(healthy)
	}
	return out, len(out.Frontends) > 0
}

// front is an address of a Service at the node.
type front struct {
	addr     netip.Addr // unspecified: any address of the node
	external bool
	sources  []netip.Prefix
}

// defaultTenant takes precedence over others.
const defaultTenant = "default"

// frontsOf lists the addresses of a Service, including those of nodes, which containers do
// not use.
func frontsOf(s *corev1.Service) []front {
	own, external := vips(s, surroundings{})
	var out []front
	for _, a := range own {
		out = append(out, front{addr: a})
	}
	for _, a := range external {
		out = append(out, front{addr: a, external: true})
	}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		for _, a := range ingress(s) {
			if !slices.Contains(own, a) && !slices.Contains(external, a) {
				out = append(out, front{a, true, sources(s)})
			}
		}
	}
	for _, a := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if slices.ContainsFunc(own, func(own netip.Addr) bool { return own.Is4() == a.Is4() }) {
			out = append(out, front{addr: a, external: true})
		}
	}
	return out
}

// sources are the allowed source ranges of a load balancer.
func sources(s *corev1.Service) []netip.Prefix {
	out := []netip.Prefix{} // nothing, if none can be parsed
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// reachable filters endpoints that own their address on the node.
func reachable(found []candidate, env surroundings) []candidate {
	var out []candidate
	for _, c := range found {
		if c.Tenant == "" || env.owners.onNode(c.Addr.Addr()) == c.Tenant {
			c.Tenant = ""
			out = append(out, c)
		}
	}
	return out
}

// providers are the providers of both families.
type providers struct{ addrs, kept []netip.AddrPort }

// backends returns who gets connections: on all nodes, and on this node.
func backends(found []candidate, proto uint8, env surroundings) (every, local providers) {
	var mine []candidate
	for _, c := range found {
		if c.Local {
			mine = append(mine, c)
		}
	}
	prefer(found, env)
	return providersOf(choose(found, proto)), providersOf(choose(mine, proto))
}

func providersOf(chosen []drivers.ServiceProvider) (out providers) {
	for _, p := range chosen {
		out.kept = append(out.kept, p.Addr)
		if !p.Draining {
			out.addrs = append(out.addrs, p.Addr)
		}
	}
	return out
}

// of filters by an address's family.
func (p providers) of(a netip.Addr) []netip.AddrPort    { return sameFamily(p.addrs, a) }
func (p providers) keeps(a netip.Addr) []netip.AddrPort { return sameFamily(p.kept, a) }

func sameFamily(all []netip.AddrPort, a netip.Addr) (out []netip.AddrPort) {
	for _, p := range all {
		if p.Addr().Is4() == a.Is4() {
			out = append(out, p)
		}
	}
	return out
}
