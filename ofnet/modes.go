package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// NewPipeline puts together the features of a forwarding mode. A combination that
// does not exist is Invalid.
func NewPipeline(set Settings) (*Pipeline, error) {
	p := &Pipeline{set: set, tunnels: map[tunnelKey]of.Instructions{}}
	switch {
	case set.Encap == VXLAN && set.Routing:
		p.mode, p.forward = "vrouter", tableRoute
		p.features = []feature{classifier{}, neighbour{arp: true, nd: true}, arpResponder{asRouter: true}, ndResponder{}, router{}}
	case set.Encap == VLAN && !set.Routing:
		p.mode, p.forward = "vlan", tableSwitch
		p.features = []feature{classifier{}, neighbour{arp: true}, arpResponder{}, macSwitch{}}
		if set.ARPFlood {
			p.features = []feature{classifier{}, neighbour{}, macSwitch{}}
		}
	default:
		return nil, errs.New(errs.Invalid, "%s networks cannot be forwarded in this mode (routing %t); vxlan needs routing and vlan needs bridge", set.Encap, set.Routing)
	}
	p.ids, p.names = number(p.features)
	return p, nil
}
