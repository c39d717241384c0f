package intent

import (
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// Topology returns the networks and groups for which docker networks exist, and whether the
// fabric is ACI.
func (e *Engine) Topology() (t docknet.Topology, aci bool) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, r := range m.networks.records.base {
		t.Networks = append(t.Networks, *r.v)
	}
	for _, r := range m.groups.records.base {
		t.Groups = append(t.Groups, *r.v)
	}
	slices.SortFunc(t.Networks, func(a, b state.Network) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(t.Groups, func(a, b state.EndpointGroup) int { return strings.Compare(a.ID, b.ID) })
	return t, inACI(m.committed())
}

// DockerNetwork returns the docker network of a network or group, by the type and key of the
// object. Infra networks have none, nor has any network in ACI mode.
func (e *Engine) DockerNetwork(typ, key string) (ref state.NetworkRef, ok bool) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch typ {
	case contivmodel.NetworkType:
		if n, known := m.networks.base[key]; known {
			r := m.networks.records.base[state.NetworkID(n.v.NetworkName, n.v.TenantName)]
			return state.NetworkRef{Tenant: n.v.TenantName, Network: n.v.NetworkName}, r.v != nil && r.v.NwType != state.NetworkInfra && !inACI(m.committed())
		}
	case contivmodel.EndpointGroupType:
		if g, known := m.groups.base[key]; known {
			return state.NetworkRef{Tenant: g.v.TenantName, Network: g.v.NetworkName, Group: g.v.GroupName}, true
		}
	}
	return ref, false
}
