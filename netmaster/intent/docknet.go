package intent

import (
	"slices"
	"strings"

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
