package whatif

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/contiv/netplugin/netmaster/trace"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// asked is a question whose ends are known.
type asked struct {
	packet  traceapi.Packet
	tenant  string // of the one that opens the connection: its rules count
	service *flowapi.Service
	// to are where the connection may lead: of a service, its providers. One without address
	// says that nobody provides it.
	to []netip.AddrPort
}

// resolve finds out who is meant.
func resolve(ctx context.Context, c Cluster, agents Agents, q flowapi.Question) (a asked, err error) {
	kube, err := kubernetesService(ctx, c, agents, &q)
	if err != nil {
		return a, err
	}
	what, err := trace.Resolve(c, traceapi.Query{From: q.From, To: q.To, Tenant: q.Tenant, Proto: q.Proto, Port: q.Port, Family: q.Family})
	if err != nil {
		return a, err
	}
	p := what.Packet
	a.packet, a.tenant = p, tenantNamed(c, what.From.Endpoint)
	if other := tenantNamed(c, what.To.Endpoint); other != "" && other != a.tenant {
		return a, errs.New(errs.Invalid, "%s is of tenant %s and %s of tenant %s: tenants are isolated, and no rule is about connections between them. "+
			"Only a network outside could lead there; ask netctl trace for the address that is used there", what.From.Name, a.tenant, what.To.Name, other)
	}
	if s := c.ServiceOf(p.Dst, a.tenant); s != nil {
		a.service, a.to = &flowapi.Service{Name: s.ServiceName, Address: p.Dst, Port: p.DstPort}, providers(c, s, p)
		return a, nil
	}
	if kube.Name == "" && what.To.Endpoint == "" && agents != nil && what.From.Host != "" {
		// An agent of an earlier version cannot say; one that does not answer is told of when it is
		// asked about NetworkPolicies.
		kube, _ = agents.Find(ctx, what.From.Host, flowapi.ServiceQuestion{Address: p.Dst, Tenant: a.tenant, Proto: p.Proto, Port: p.DstPort})
	}
	if kube.Name == "" {
		a.to = []netip.AddrPort{netip.AddrPortFrom(p.Dst, p.DstPort)}
		return a, nil
	}
	a.service = &flowapi.Service{Name: kube.Name, Address: p.Dst, Port: p.DstPort}
	for _, to := range kube.Providers {
		if to.Addr().Is4() == p.Dst.Is4() {
			a.to = append(a.to, to)
		}
	}
	a.to = orNobody(a.to)
	return a, nil
}

// kubernetesService asks the agent of the sender's host for a Service that is named as
// namespace/name, and puts its address in place of the name.
func kubernetesService(ctx context.Context, c Cluster, agents Agents, q *flowapi.Question) (answer flowapi.ServiceAnswer, err error) {
	if agents == nil || !strings.Contains(q.To, "/") || c.EndpointNamed(q.To) != nil {
		return answer, nil
	}
	from, err := trace.Resolve(c, traceapi.Query{From: q.From, To: q.From, Tenant: q.Tenant, Proto: q.Proto, Port: q.Port, Family: q.Family})
	if err != nil {
		return answer, err
	}
	p := from.Packet
	answer, err = agents.Find(ctx, from.From.Host, flowapi.ServiceQuestion{Name: q.To, Tenant: tenantNamed(c, from.From.Endpoint), Proto: p.Proto, Port: p.DstPort})
	if err != nil {
		return answer, errs.New(errs.Unavailable, "ask host %s for Service %.80s: %w", from.From.Host, q.To, err)
	}
	for _, a := range answer.Addresses {
		if a.Is4() == p.Dst.Is4() {
			q.To = a.String()
			return answer, nil
		}
	}
	return answer, nil // resolving says what is not found
}

// tenantNamed is the tenant of an endpoint; empty if there is no such endpoint.
func tenantNamed(c Cluster, endpoint string) string {
	ep := c.EndpointNamed(endpoint)
	if ep == nil {
		return ""
	}
	_, tenant := c.NetworkOf(ep)
	return tenant
}

// providers are who answers for a service; one without address: nobody does.
func providers(c Cluster, s *state.ServiceLB, p traceapi.Packet) (all []netip.AddrPort) {
	port, ok := providerPort(s.Ports, p.Proto, p.DstPort)
	if !ok {
		return orNobody(nil)
	}
	for _, provider := range s.Providers {
		ep := c.EndpointNamed(provider.EpIDKey)
		if ep == nil {
			continue
		}
		text := ep.IPAddress
		if p.Dst.Is6() {
			text = ep.IPv6Address
		}
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.AddrPortFrom(a, port))
		}
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return orNobody(slices.Compact(all))
}

// orNobody is a list that says that nobody is there, if it is empty.
func orNobody(all []netip.AddrPort) []netip.AddrPort {
	if len(all) == 0 {
		return []netip.AddrPort{{}}
	}
	return all
}

// providerPort finds the provider's port in SERVICEPORT:PROVIDERPORT:PROTOCOL.
func providerPort(ports []string, proto string, port uint16) (uint16, bool) {
	for _, text := range ports {
		if own, provider, name, ok := state.ServicePort(text); ok && own == port && strings.EqualFold(name, proto) {
			return provider, true
		}
	}
	return 0, false
}
