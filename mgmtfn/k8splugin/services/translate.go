package services

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/contiv/netplugin/drivers"
)

// surroundings is what a translation depends on besides the Service itself.
type surroundings struct {
	host   string                // label of this host
	node   string                // name of this host's Node
	zone   string                // of this host's Node; empty: unknown
	nodes  map[netip.Addr]string // names of Nodes by their addresses
	owners *owners
}

// externalSuffix distinguishes the declaration of a Service's external addresses, which
// have other rules, from that of its own.
const externalSuffix = "+external"

// translate translates a Service for the driver: to nothing if it has no address of its own
// or another proxy handles it; to two declarations if its own addresses use pods of the
// same node only; otherwise to one.
func translate(s *corev1.Service, slices []*discoveryv1.EndpointSlice, env surroundings) []drivers.Service {
	if !ours(s) {
		return nil
	}
	own, external := vips(s, env)
	id := s.Namespace + "/" + s.Name
	base := drivers.Service{Affinity: affinity(s)}
	local := s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	if !local {
		own, external = append(own, external...), nil
	}
	declare := func(id string, vips []netip.Addr, local bool) drivers.Service {
		out := base
		out.ID, out.VIPs, out.OnlyLocal = id, vips, local
		out.Ports = ports(s, slices, env, local)
		return out
	}
	var out []drivers.Service
	if len(own) > 0 {
		out = append(out, declare(id, own, local))
	}
	if len(external) > 0 {
		out = append(out, declare(id+externalSuffix, external, false))
	}
	return out
}

// ids lists all ids that translate may give to a Service's declarations.
func ids(key string) []string { return []string{key, key + externalSuffix} }

// ours reports whether a Service is load-balanced here.
func ours(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone && !others(s.Labels)
}

// others reports whether the labels of a Service or a slice exclude it from proxies, or
// from this one.
func others(labels map[string]string) bool {
	_, otherProxy := labels["service.kubernetes.io/service-proxy-name"]
	_, headless := labels[corev1.IsHeadlessService]
	return otherProxy || headless
}

// vips returns the addresses of a Service: those assigned by the cluster, and external
// ones. It omits addresses of nodes, for which the node itself answers.
func vips(s *corev1.Service, env surroundings) (own, external []netip.Addr) {
	all := s.Spec.ClusterIPs
	if len(all) == 0 {
		all = []string{s.Spec.ClusterIP}
	}
	add := func(list []netip.Addr, text string) []netip.Addr {
		a, err := netip.ParseAddr(text)
		if err != nil || slices.Contains(own, a) || slices.Contains(list, a) {
			return list
		}
		if _, isNode := env.nodes[a]; isNode {
			return list
		}
		return append(list, a)
	}
	for _, text := range all {
		own = add(own, text)
	}
	for _, text := range s.Spec.ExternalIPs {
		external = add(external, text)
	}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		return own, external // only the node's own proxy knows the allowed sources
	}
	for _, a := range ingress(s) {
		external = add(external, a.String())
	}
	return own, external
}

// ingress returns the addresses of load balancers for which nodes answer.
func ingress(s *corev1.Service) (out []netip.Addr) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil && (in.IPMode == nil || *in.IPMode == corev1.LoadBalancerIPModeVIP) {
			out = append(out, a)
		}
	}
	return out
}

// affinity is how long a client keeps its provider.
func affinity(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := int32(corev1.DefaultClientIPServiceAffinitySeconds)
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

func protocol(p corev1.Protocol) (uint8, bool) {
	switch p {
	case corev1.ProtocolTCP, "":
		return unix.IPPROTO_TCP, true
	case corev1.ProtocolUDP:
		return unix.IPPROTO_UDP, true
	case corev1.ProtocolSCTP:
		return unix.IPPROTO_SCTP, true
	}
	return 0, false
}

func ports(s *corev1.Service, all []*discoveryv1.EndpointSlice, env surroundings, local bool) []drivers.ServicePort {
	var out []drivers.ServicePort
	for _, p := range s.Spec.Ports {
		proto, ok := protocol(p.Protocol)
		if !ok || p.Port < 1 || p.Port > 65535 {
			continue
		}
		found := candidates(p.Name, proto, all, env)
		if local {
			found = slices.DeleteFunc(found, func(c candidate) bool { return !c.Local })
		} else {
			prefer(found, env)
		}
		out = append(out, drivers.ServicePort{
			Name: p.Name, Proto: proto, Port: uint16(p.Port), NodePort: uint16(max(p.NodePort, 0)), Providers: choose(found, proto),
		})
	}
	return out
}

// candidate is one address of a slice at one port.
type candidate struct {
	drivers.ServiceProvider
	ready, leaving bool // leaving: terminating, but still serving
	hints          *discoveryv1.EndpointHints
	farther        bool   // another one is nearer
	who            string // has this address, and possibly another one
}

// candidates lists the addresses in slices for a port of a Service. Each slice has its own
// number for the port.
func candidates(port string, proto uint8, all []*discoveryv1.EndpointSlice, env surroundings) []candidate {
	var out []candidate
	for _, slice := range all {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 && slice.AddressType != discoveryv1.AddressTypeIPv6 || others(slice.Labels) {
			continue
		}
		for _, p := range slice.Ports {
			if deref(p.Name, "") != port || p.Port == nil || *p.Port < 1 || *p.Port > 65535 {
				continue
			}
			if theirs, ok := protocol(deref(p.Protocol, corev1.ProtocolTCP)); !ok || theirs != proto {
				continue
			}
			for _, ep := range slice.Endpoints {
				if c, ok := asCandidate(ep, uint16(*p.Port), env); ok {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

func asCandidate(ep discoveryv1.Endpoint, port uint16, env surroundings) (c candidate, ok bool) {
	if len(ep.Addresses) == 0 {
		return c, false
	}
	a, err := netip.ParseAddr(ep.Addresses[0]) // further ones have no meaning
	if err != nil {
		return c, false
	}
	c.Addr, c.hints, c.who = netip.AddrPortFrom(a, port), ep.Hints, a.String()
	if t := ep.TargetRef; t != nil {
		c.who = t.Kind + " " + t.Namespace + "/" + t.Name
	}
	c.ready = deref(ep.Conditions.Ready, true)
	c.leaving = !c.ready && deref(ep.Conditions.Terminating, false) && deref(ep.Conditions.Serving, c.ready)
	node := deref(ep.NodeName, "")
	if at, isNode := env.nodes[a]; isNode {
		c.Local = at == env.node
		return c, true
	}
	pod := ""
	if ep.TargetRef != nil && ep.TargetRef.Kind == "Pod" {
		pod = ep.TargetRef.Name
	}
	owner, tenant, known := env.owners.owner(a, pod, node)
	switch {
	case known:
		c.Tenant, c.Local = tenant, owner.host == env.host
	case pod != "":
		return c, false // not in Contiv's networks, or not yet
	}
	return c, true // else somewhere outside
}

// prefer marks the endpoints that hints advise against, if every ready endpoint has a hint
// and one of them advises this node. Nodes take precedence over zones.
func prefer(all []candidate, env surroundings) {
	toNode := func(h *discoveryv1.EndpointHints) (has, here bool) {
		return len(h.ForNodes) > 0, slices.ContainsFunc(h.ForNodes, func(n discoveryv1.ForNode) bool { return n.Name == env.node })
	}
	toZone := func(h *discoveryv1.EndpointHints) (has, here bool) {
		return len(h.ForZones) > 0, env.zone != "" && slices.ContainsFunc(h.ForZones, func(z discoveryv1.ForZone) bool { return z.Name == env.zone })
	}
	for _, hint := range []func(*discoveryv1.EndpointHints) (bool, bool){toNode, toZone} {
		every, some := true, false
		for _, c := range all {
			if !c.ready {
				continue
			}
			has, here := false, false
			if c.hints != nil {
				has, here = hint(c.hints)
			}
			every, some = every && has, some || here
		}
		if !every || !some {
			continue
		}
		for i, c := range all {
			if c.ready {
				_, here := hint(c.hints)
				all[i].farther = !here
			}
		}
		return
	}
}

// choose returns who gets connections: what is ready and near, or, if nothing is ready,
// what still serves while it terminates. Others keep their existing connections, except for
// datagrams to endpoints that are neither ready nor terminating: a client of UDP would
// never notice that nobody listens.
func choose(all []candidate, proto uint8) []drivers.ServiceProvider {
	ready := map[string]bool{} // by tenant
	anywhere := false
	for _, c := range all {
		if c.ready {
			ready[c.Tenant], anywhere = true, true
		}
	}
	type place struct {
		addr   netip.AddrPort
		tenant string
	}
	chosen := map[place]drivers.ServiceProvider{}
	for _, c := range all {
		p := c.ServiceProvider
		switch {
		case c.ready:
			p.Draining = c.farther
		case c.leaving:
			p.Draining = ready[""] || ready[c.Tenant] || c.Tenant == "" && anywhere
		case proto == unix.IPPROTO_UDP:
			continue
		default:
			p.Draining = true
		}
		at := place{p.Addr, p.Tenant}
		if other, twice := chosen[at]; twice && !other.Draining {
			continue
		}
		chosen[at] = p
	}
	var out []drivers.ServiceProvider
	for _, p := range chosen {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b drivers.ServiceProvider) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Tenant, b.Tenant))
	})
	return out
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
