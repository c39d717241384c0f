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
		p.mode, p.forward, p.filtered = "vrouter", tableRoute, tableHop
		p.features = []feature{classifier{}, tunnels{}, neighbour{arp: true, nd: true}, arpResponder{asRouter: true}, ndResponder{}, router{}}
	case set.Encap == VXLAN:
		p.mode, p.forward, p.filtered = "vxlan", tableTrack, tableMAC
		p.features = append(bridgeNeighbours(set), tunnels{}, macTable{})
	case set.Encap == VLAN && !set.Routing:
		p.mode, p.forward, p.filtered = "vlan", tableReach, tableSwitch
		p.features = append(bridgeNeighbours(set), reach{next: tableTrack}, macSwitch{})
	case set.Encap == VLAN:
		p.mode, p.forward, p.filtered = "vlrouter", tableRoute, tableHop
		p.features = []feature{
			classifier{}, neighbour{arp: true, nd: true}, arpResponder{asRouter: true}, ndResponder{}, router{}, reach{next: tableExternal}, uplinkRouter{}, external{},
		}
	default:
		return nil, errs.New(errs.Invalid, "encapsulation %d is unknown: expected vlan or vxlan", set.Encap)
	}
	p.next, p.filtered = p.filtered, tableServiceReply
	p.policy.byAddress = !set.Routing
	p.features = append(p.features, p.policy, service{}, rejecter{}, fair{})
	if set.EndpointPolicies {
		p.features = append(p.features, guards{})
	}
	p.entry, p.sent = tableFrame, tableService
	p.features = append(p.features, frames{})
	if set.DNS.Rate != 0 {
		p.sent = tableDNS
		p.features = append(p.features, dns{})
	}
	if !set.AllowSpoofing {
		p.features = append(p.features, sourceCheck{})
	}
	p.features = append(p.features, hostFeatures(set)...)
	p.ids, p.names = number(p.features)
	return p, nil
}

// bridgeNeighbours are the features before forwarding in the bridge modes: neighbour
// discovery is flooded, ARP only when the settings say so.
func bridgeNeighbours(set Settings) []feature {
	classify := classifier{uplinks: set.Encap == VLAN}
	if set.ARPFlood {
		return []feature{classify, neighbour{}}
	}
	return []feature{classify, neighbour{arp: true}, arpResponder{}}
}
