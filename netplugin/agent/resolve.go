package agent

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

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

// asRule reads a rule's record. The tenant is the first part of its id.
func asRule(rec state.PolicyRule) (drivers.Rule, error) {
	tenant, _, ok := strings.Cut(rec.RuleID, ":")
	bad := func(what string, value any, expected string) (drivers.Rule, error) {
		return drivers.Rule{}, fmt.Errorf("rule %q: %s %v: expected %s", rec.RuleID, what, value, expected)
	}
	within := func(v, from, to int) bool { return from <= v && v <= to }
	switch {
	case !ok || tenant == "":
		return bad("id", rec.RuleID, "<tenant>:…")
	case !within(rec.Priority, 1, 100):
		return bad("priority", rec.Priority, "1 to 100")
	case rec.Action != "allow" && rec.Action != "deny" && rec.Action != "reject":
		return bad("action", strconv.Quote(rec.Action), "allow, deny or reject")
	case !within(rec.SrcEndpointGroup, 0, math.MaxInt32) || !within(rec.DstEndpointGroup, 0, math.MaxInt32):
		return bad("groups", []int{rec.SrcEndpointGroup, rec.DstEndpointGroup}, "numbers from 0")
	case !within(rec.IPProtocol, 0, math.MaxUint8):
		return bad("protocol", rec.IPProtocol, "0 to 255")
	case !within(rec.SrcPort, 0, math.MaxUint16) || !within(rec.DstPort, 0, math.MaxUint16):
		return bad("ports", []int{rec.SrcPort, rec.DstPort}, "0 to 65535")
	case !ofnet.KnownFlags(rec.TCPFlags):
		return bad("TCP flags", strconv.Quote(rec.TCPFlags), "syn, syn,ack, ack, syn,!ack, !syn,ack or none")
	}
	r := drivers.Rule{Tenant: tenant, Rule: ofnet.Rule{
		ID: rec.RuleID, Priority: uint8(rec.Priority), Deny: rec.Action != "allow", Reject: rec.Action == "reject",
		SrcGroup: uint32(rec.SrcEndpointGroup), DstGroup: uint32(rec.DstEndpointGroup),
		Proto: uint8(rec.IPProtocol), SrcPort: uint16(rec.SrcPort), DstPort: uint16(rec.DstPort), Flags: rec.TCPFlags,
	}}
	var err error
	if r.Src, err = optionalPrefix(rec.SrcIPAddr); err != nil {
		return bad("source", strconv.Quote(rec.SrcIPAddr), "an address or a CIDR")
	}
	if r.Dst, err = optionalPrefix(rec.DstIPAddr); err != nil {
		return bad("destination", strconv.Quote(rec.DstIPAddr), "an address or a CIDR")
	}
	if r.Src.IsValid() && r.Dst.IsValid() && r.Src.Addr().Is4() != r.Dst.Addr().Is4() {
		return bad("addresses", rec.SrcIPAddr+" and "+rec.DstIPAddr, "one family")
	}
	return r, nil
}

// optionalPrefix reads an address, a CIDR or nothing.
func optionalPrefix(s string) (netip.Prefix, error) {
	if s == "" {
		return netip.Prefix{}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Prefix(a.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}
