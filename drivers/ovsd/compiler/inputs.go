package compiler

import (
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// Inputs are everything that programs depend on. Nil maps are empty.
type Inputs struct {
	// Declared.
	Global           drivers.Global
	Cluster          *drivers.ClusterReach // nil: hosts reach their own containers only
	Networks         map[string]drivers.Network
	Endpoints        map[string]drivers.Endpoint
	Rules            map[string]drivers.Rule
	Services         map[string]drivers.Service
	RuleSets         map[string]drivers.PolicyRuleSet
	EndpointPolicies map[string]drivers.EndpointPolicy // by endpoint id
	PolicyPeers      map[string]drivers.PolicyPeer     // by tenant and address
	Hosts            map[string]drivers.Host           // by label
	ControlPorts     []ofnet.PortRange                 // besides those of the configuration
	Synced           bool                              // the store has declared everything

	// Observed.
	Bridges map[string]BridgeState // by encapsulation; empty until the bridges exist
	Ports   map[string]PortNumber  // by endpoint id; also HostEndpointVXLAN and HostEndpointVLAN
	Uplinks map[string]ofnet.Uplink
	Tunnel  bool // the tunnel port has its OpenFlow number

	// VRFs are the numbers of tenants on this host. They are kept forever; the compiler
	// adds those that it needs.
	VRFs map[string]uint16
}

// BridgeState is what programs depend on in a bridge.
type BridgeState struct {
	Round  uint16 // part of cookies
	Kernel bool   // the datapath is the kernel's
}

// PortNumber has the two numbers of a port: the switch's and the one in its name.
type PortNumber struct {
	OpenFlow uint32
	Name     int // of the endpoint's private addresses; 0 for the host's own ports
}

// Config does not change while the process runs.
type Config struct {
	HostLabel        string
	VTEP, CtrlIP     netip.Addr
	ControlPorts     []ofnet.PortRange
	TunnelPorts      []uint16
	AllowSpoofing    bool
	EndpointPolicies bool
	ConnectionRate   uint32
	DNS              ofnet.DNSSettings
	FlowLog          ofnet.FlowLog
	TunnelPort       uint32 // OpenFlow port
}

func (in *Inputs) init() {
	fill(&in.Networks)
	fill(&in.Endpoints)
	fill(&in.Rules)
	fill(&in.Services)
	fill(&in.RuleSets)
	fill(&in.PolicyPeers)
	fill(&in.EndpointPolicies)
	fill(&in.Hosts)
	fill(&in.Bridges)
	fill(&in.Ports)
	fill(&in.Uplinks)
	fill(&in.VRFs)
}

func fill[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}
