package intent

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/state"
)

// EndpointsAt returns the endpoints with an address, in one tenant or, for "", in all,
// sorted by id.
func (e *Engine) EndpointsAt(a netip.Addr, tenant string) []*state.Endpoint {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	text := a.String()
	var found []*state.Endpoint
	for _, r := range m.endpoints.base {
		if (r.v.IPAddress == text || r.v.IPv6Address == text) && (tenant == "" || m.tenantOf(r.v) == tenant) {
			found = append(found, r.v)
		}
	}
	slices.SortFunc(found, func(a, b *state.Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

// EndpointNamed finds an endpoint like InspectEndpoint; nil: there is none.
func (e *Engine) EndpointNamed(search string) *state.Endpoint { return e.findEndpoint(search, nil) }

// NetworkOf returns the names of an endpoint's network and tenant.
func (e *Engine) NetworkOf(ep *state.Endpoint) (network, tenant string) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.networkOf(ep)
}

// ServiceAt returns the addresses of a service; none: there is no such service.
func (e *Engine) ServiceAt(name, tenant string) []netip.Addr {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	rec, ok := m.services.records.base[state.ServiceID(name, tenant)]
	if !ok {
		return nil
	}
	var out []netip.Addr
	for _, text := range []string{rec.v.IPAddress, rec.v.IPv6Address} {
		if a, err := netip.ParseAddr(text); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// HostRecords reads the records of hosts, by label.
func (e *Engine) HostRecords(ctx context.Context) (map[string]state.Host, error) {
	return e.hostRecords(ctx)
}
