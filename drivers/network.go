package drivers

import (
	"net/netip"

	"github.com/contiv/netplugin/ofnet"
)

// Global holds the settings that choose the pipelines.
type Global struct {
	FwdMode   string // bridge | routing
	ARPMode   string // proxy | flood
	PvtSubnet netip.Prefix
}

// Network is a network with everything resolved that the driver needs.
type Network struct {
	ofnet.Network // ID is <network>.<tenant>; VRF and OwnsAddresses are the driver's own

	Tenant string
	Name   string
	Infra  bool
}

// Endpoint is an endpoint with its network, group and host resolved.
type Endpoint struct {
	ID      string // <network>.<tenant>-<endpoint>
	Network Network
	Group   uint32
	MAC     ofnet.MAC
	IPv4    netip.Addr
	IPv6    netip.Addr
	QoS     ofnet.QoS  // of an endpoint of this host
	Local   bool       // of this host: its port is found by its id
	VTEP    netip.Addr // of a remote endpoint's host; zero while the host is unknown
	// Tag is the VLAN of an endpoint of this host whose group has one of its own, as in
	// an ACI fabric; 0 for that of the network.
	Tag uint16
}

// VLAN is the one that the endpoint's port is in.
func (e Endpoint) VLAN() uint16 {
	if e.Tag != 0 {
		return e.Tag
	}
	return e.Network.Tag
}

// Rule is a policy rule for the containers of a tenant. The zero value of a field of
// its match means any.
type Rule struct {
	Tenant string
	ofnet.Rule
	// Audit: it decides nothing. Connections of its tenant are tracked if there is a log, which
	// says what it would have decided.
	Audit bool
	// AuditFile: connections that it decides go to the audit file, if there is a log.
	AuditFile bool
}
