package attachment

import "github.com/contiv/netplugin/state"

// Labels by which a container, or the pod or the namespace it is in, says where it
// belongs.
const (
	LabelTenant  = "io.contiv.tenant"
	LabelNetwork = "io.contiv.network"
	LabelGroup   = "io.contiv.net-group"
)

// Place says where a container belongs.
type Place struct{ Tenant, Network, Group string }

// NetworkID is the id of the place's network.
func (p Place) NetworkID() string { return state.NetworkID(p.Network, p.Tenant) }

// Labelled is the place that labels name; look returns a label's value, or "".
func Labelled(look func(label string) string) Place {
	return Place{Tenant: look(LabelTenant), Network: look(LabelNetwork), Group: look(LabelGroup)}
}
