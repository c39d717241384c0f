package agent

import (
	"fmt"
	"net/netip"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
)

// The functions here turn records into drivers' objects. They fail only on
// content that netmaster never writes; the object is then left out, with a log line.

func asGlobal(g state.Global) (drivers.Global, error) {
	pvt, err := netip.ParsePrefix(g.PvtSubnet)
	if err != nil {
		return drivers.Global{}, fmt.Errorf("global settings: private subnet %q: expected a CIDR", g.PvtSubnet)
	}
	return drivers.Global{FwdMode: g.FwdMode, ARPMode: g.ARPMode, PvtSubnet: pvt.Masked()}, nil
}

// The largest VLAN ID (IEEE 802.1Q) and VNI (RFC 7348).
const maxVLAN, maxVNI = 4094, 1<<24 - 1

func asNetwork(n state.Network) (drivers.Network, error) {
	out := drivers.Network{
		Network: ofnet.Network{ID: n.ID, Tag: uint16(n.PktTag), VNI: uint32(n.ExtPktTag), Encap: ofnet.VLAN, Settings: n.Settings},
		Tenant:  n.Tenant, Name: n.NetworkName, Infra: n.NwType == state.NetworkInfra,
	}
	if n.PktTagType == state.EncapVXLAN {
		out.Encap = ofnet.VXLAN
	}
	if n.PktTag < 0 || n.PktTag > maxVLAN {
		return out, fmt.Errorf("network %s: VLAN %d: expected 0 to %d", n.ID, n.PktTag, maxVLAN)
	}
	if n.ExtPktTag < 0 || n.ExtPktTag > maxVNI {
		return out, fmt.Errorf("network %s: VNI %d: expected 0 to %d", n.ID, n.ExtPktTag, maxVNI)
	}
	var err error
	if out.Subnet4, err = subnet(n.SubnetIP, n.SubnetLen); err != nil {
		return out, fmt.Errorf("network %s: subnet: %w", n.ID, err)
	}
	if out.Subnet6, err = subnet(n.IPv6Subnet, n.IPv6Len); err != nil {
		return out, fmt.Errorf("network %s: IPv6 subnet: %w", n.ID, err)
	}
	if out.Gateway4, err = optionalAddr(n.Gateway); err != nil {
		return out, fmt.Errorf("network %s: gateway: %w", n.ID, err)
	}
	if out.Gateway6, err = optionalAddr(n.IPv6Gateway); err != nil {
		return out, fmt.Errorf("network %s: IPv6 gateway: %w", n.ID, err)
	}
	return out, nil
}

func subnet(ip string, bits uint) (netip.Prefix, error) {
	if ip == "" {
		return netip.Prefix{}, nil
	}
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return netip.Prefix{}, err
	}
	p, err := a.Prefix(int(bits))
	if err != nil {
		return netip.Prefix{}, err
	}
	return p, nil
}

func optionalAddr(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	return netip.ParseAddr(s)
}

func asEndpoint(e state.Endpoint, n drivers.Network, local bool, vtep netip.Addr) (drivers.Endpoint, error) {
	out := drivers.Endpoint{ID: e.ID, Network: n, Group: uint32(e.EndpointGroupID), Local: local}
	if !local {
		out.VTEP = vtep
	}
	var err error
	if out.MAC, err = ofnet.ParseMAC(e.MacAddress); err != nil {
		return out, fmt.Errorf("endpoint %s: %w", e.ID, err)
	}
	if out.IPv4, err = optionalAddr(e.IPAddress); err != nil {
		return out, fmt.Errorf("endpoint %s: address: %w", e.ID, err)
	}
	if out.IPv6, err = optionalAddr(e.IPv6Address); err != nil {
		return out, fmt.Errorf("endpoint %s: IPv6 address: %w", e.ID, err)
	}
	return out, nil
}
