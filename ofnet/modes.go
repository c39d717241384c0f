package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/errs"
)

// Settings select and configure a pipeline.
type Settings struct {
	Encap    Encap
	Routing  bool // forward by IP address; otherwise by MAC address
	ARPFlood bool // bridge modes: let ARP through instead of answering it
	// AllowSpoofing lets containers send from addresses that are not theirs.
	AllowSpoofing bool
	// Kernel: the datapath is that of the kernel. It cannot rewrite neighbor discovery, so the
	// agent answers; and it leaves datagrams whole once it has tracked their fragments.
	Kernel     bool
	TunnelPort uint32 // OpenFlow port of the flow-based VXLAN port
	HostMAC    MAC    // of this host's router on the uplinks (see HostMAC); VLAN routing
	Round      uint16 // part of cookies
	// Host is how containers and the host reach each other; zero if they do not.
	Host HostAccess
	// EndpointPolicies adds the tables for endpoint policies.
	EndpointPolicies bool
	// ConnectionRate limits the new tracked connections of an endpoint of this host per
	// second; 0: no limit. Above it, their first packets are dropped.
	ConnectionRate uint32
	// FlowLog is what is prepared for a log of connections.
	FlowLog FlowLog
	// DNS sends name queries of this host's containers to the agent.
	DNS DNSSettings
}

// Mode is a way of forwarding.
type Mode uint8

// The modes: how frames travel between hosts, and whether they are forwarded by IP or MAC
// address.
const (
	VLANBridge Mode = iota + 1
	VXLANBridge
	VXLANRouting
	VLANRouting
)

// Modes lists all modes.
func Modes() []Mode { return []Mode{VLANBridge, VXLANBridge, VXLANRouting, VLANRouting} }

// String is the name of the pipeline in debug output.
func (m Mode) String() string {
	return [...]string{"none", "vlan", "vxlan", "vrouter", "vlrouter"}[m]
}

// mode is the mode that the settings select.
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

// NewPipeline combines the features of a forwarding mode. Unsupported combinations of
// settings are Invalid.
func NewPipeline(set Settings) (*Pipeline, error) {
	mode, err := set.mode()
	if err != nil {
		return nil, err
	}
	features := featuresOf(mode, set)
	return &Pipeline{set: set, mode: mode, features: features, layout: newLayout(features), tunnels: map[tunnelKey]of.Instructions{}}, nil
}

// featuresOf are the configured features of a mode. If two have the same flow, that of the
// first one is used.
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
	if set.logs() {
		features = append(features, flowLog{})
	}
	if set.Host.enabled() {
		features = append(features, hostAccess{world: mode == VXLANRouting})
		if !set.Routing {
			features = append(features, hostNeighbor{})
		}
	}
	return features
}

// forwarding are the features that differ between modes.
func forwarding(mode Mode, set Settings) []feature {
	routed := []feature{classifier{}, neighbor{arp: true, nd: true}, arpResponder{asRouter: true}, ndResponder{}, router{}}
	switch mode {
	case VXLANRouting:
		return append(routed, tunnels{}, reach{})
	case VLANRouting:
		return append(routed, reach{links: true}, uplinkRouter{}, external{})
	case VXLANBridge:
		return append(bridgeNeighbors(set), tunnels{}, macTable{}, reach{})
	default:
		return append(bridgeNeighbors(set), reach{links: true}, macSwitch{})
	}
}

// bridgeNeighbors are the features before forwarding in the bridge modes: neighbor
// discovery is flooded, ARP only if the settings say so.
func bridgeNeighbors(set Settings) []feature {
	classify := classifier{uplinks: set.Encap == VLAN}
	if set.ARPFlood {
		return []feature{classify, neighbor{}}
	}
	return []feature{classify, neighbor{arp: true}, arpResponder{}}
}
