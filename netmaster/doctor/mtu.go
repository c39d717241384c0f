package doctor

import (
	"fmt"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/doctorapi"
)

// mtus finds containers that may send more than fits through the tunnels of their host.
var mtus = check{"mtu", each(func(label string, h agents.Facts) []doctorapi.Finding {
	large, most, fits := 0, 0, h.Switch.Tunnels.MTU
	for _, p := range h.Switch.Ports {
		if p.Tunnelled && fits > 0 && p.MTU > fits {
			large++
			most = max(most, p.MTU)
		}
	}
	if large == 0 {
		return nil
	}
	return []doctorapi.Finding{{
		Code: "mtu-too-large", Severity: doctorapi.Error, Object: host(label),
		Text: fmt.Sprintf("%d containers have an MTU of up to %d, but only %d bytes fit through its tunnels", large, most, fits),
		Do:   fmt.Sprintf("raise the MTU of the interface with the tunnel address %v, or start the containers again", h.Switch.Tunnels.VTEP),
	}}
})}
