package attachment

import (
	"fmt"
	"net/netip"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
)

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

// wish adds addresses to what netmaster is asked for.
func wish(config *masterapi.ConfigEP, addresses []string) error {
	for _, text := range addresses {
		addr, err := netip.ParseAddr(text)
		if prefix, ofPrefix := netip.ParsePrefix(text); err != nil && ofPrefix == nil {
			addr, err = prefix.Addr(), nil
		}
		if err != nil {
			return fmt.Errorf("address %.50q: expected one like 10.1.1.7 or 10.1.1.7/24", text)
		}
		field := &config.IPv6Address
		if addr = addr.Unmap(); addr.Is4() {
			field = &config.IPAddress
		}
		if *field != "" {
			return fmt.Errorf("addresses %s and %s: expected at most one of each family", *field, addr)
		}
		*field = addr.String()
	}
	return nil
}
