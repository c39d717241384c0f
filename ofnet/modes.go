package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// Settings choose a pipeline.
type Settings struct {
	Encap    Encap
	Routing  bool // forward by IP address; otherwise by MAC address
	ARPFlood bool // bridge modes: let ARP through instead of answering it
	// AllowSpoofing lets containers send under addresses that are not theirs.
	AllowSpoofing bool
	// NDByAgent: the datapath cannot rewrite neighbour discovery, the agent answers.
	NDByAgent  bool
	TunnelPort uint32 // OpenFlow port of the flow-based VXLAN port
	HostMAC    MAC    // of this host on the links of its uplinks (see HostMAC); VLAN routing
	Round      uint16 // goes into cookies
	// Host is how containers and the host reach each other; zero when they do not.
	Host HostAccess
	// EndpointPolicies makes room for endpoints that are subject to PolicyRuleSets.
	EndpointPolicies bool
	// ConnectionRate bounds the tracked connections that an endpoint of this host may begin
	// per second; 0: it does not. Beyond it, their first packets are dropped.
	ConnectionRate uint32
	// DNS hands the agent what containers of this host ask name servers by UDP.
	DNS DNSSettings
}

// Mode is a way of forwarding.
type Mode uint8

// The modes: what carries frames between hosts, and whether by IP or by MAC address.
const (
	VLANBridge Mode = iota + 1
	VXLANBridge
	VXLANRouting
	VLANRouting
)

// Modes are all there are.
func Modes() []Mode { return []Mode{VLANBridge, VXLANBridge, VXLANRouting, VLANRouting} }

// String is the name of the pipeline, as inspection tells it.
func (m Mode) String() string {
	return [...]string{"none", "vlan", "vxlan", "vrouter", "vlrouter"}[m]
}

// mode is the mode that the settings ask for.
func (s Settings) mode() (Mode, error) {
	switch {
	case s.Encap == VXLAN && s.Routing:
		return VXLANRouting, nil
	case s.Encap == VXLAN:
		return VXLANBridge, nil
	case s.Encap == VLAN && s.Routing:
		return VLANRouting, nil
	case s.Encap == VLAN:
		return VLANBridge, nil
	}
	return 0, errs.New(errs.Invalid, "encapsulation %d is unknown: expected vlan or vxlan", s.Encap)
}

// NewPipeline puts together the features of a forwarding mode. A combination that
// does not exist is Invalid.
func NewPipeline(set Settings) (*Pipeline, error) {
	mode, err := set.mode()
	if err != nil {
		return nil, err
	}
	features := featuresOf(mode, set)
	return &Pipeline{set: set, mode: mode, features: features, layout: newLayout(features), tunnels: map[tunnelKey]of.Instructions{}}, nil
}

// featuresOf are the features of a mode, configured. Where two have the same flow, the
// first one's counts.
func featuresOf(mode Mode, set Settings) []feature {
	features := forwarding(mode, set)
	if set.DNS.Rate != 0 {
		features = append(features, dns{})
	}
	features = append(features, policy{byAddress: !set.Routing}, service{}, rejecter{}, fair{})
	if set.EndpointPolicies {
		features = append(features, endpointPolicies{})
	}
	features = append(features, frames{})
	if !set.AllowSpoofing {
		features = append(features, sourceCheck{})
	}
	if set.Host.enabled() {
		features = append(features, hostAccess{world: mode == VXLANRouting})
		if !set.Routing {
			features = append(features, hostNeighbour{})
		}
	}
	return features
}

// forwarding are the features that differ between modes.
func forwarding(mode Mode, set Settings) []feature {
	routed := []feature{classifier{}, neighbour{arp: true, nd: true}, arpResponder{asRouter: true}, ndResponder{}, router{}}
	switch mode {
	case VXLANRouting:
		return append(routed, tunnels{}, reach{})
	case VLANRouting:
		return append(routed, reach{links: true}, uplinkRouter{}, external{})
	case VXLANBridge:
		return append(bridgeNeighbours(set), tunnels{}, macTable{}, reach{})
	default:
		return append(bridgeNeighbours(set), reach{links: true}, macSwitch{})
	}
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
