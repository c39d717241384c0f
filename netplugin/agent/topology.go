package agent

import (
	"slices"
	"strings"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
)

// Topology returns the networks and groups there are, and whether the fabric is ACI.
// known says whether the store has been read; changed is closed when there may be others.
func (a *Agent) Topology() (t docknet.Topology, aci, known bool, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.records {
		t.Networks = append(t.Networks, n)
	}
	for _, g := range a.groups {
		t.Groups = append(t.Groups, g)
	}
	slices.SortFunc(t.Networks, func(x, y state.Network) int { return strings.Compare(x.ID, y.ID) })
	slices.SortFunc(t.Groups, func(x, y state.EndpointGroup) int { return strings.Compare(x.ID, y.ID) })
	aci = a.global != nil && strings.HasPrefix(a.global.InfraType, "aci")
	return t, aci, a.loaded && a.global != nil, a.changed.Next()
}
