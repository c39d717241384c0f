package cni

import (
	"fmt"
	"net"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
)

// Attached describes a container's attached interface.
type Attached struct {
	Endpoint string // its name inside its network
	MAC      string
	MTU      int
	HostPort string // the switch's end
	IPv4     string // address and prefix length; empty without
	IPv6     string
	Gateway4 string // of the default route; empty without
	Gateway6 string
	Routes   []Route
}

// Route is a route of a container; an empty Gateway means on-link.
type Route struct{ Dst, Gateway string }

// Result converts a to the specification's newest version ("Success"), added to the result
// of earlier plugins, if any. The interface is named ifName in the network namespace netns.
func (a Attached) Result(prev types.Result, ifName, netns string) (*current.Result, error) {
	res := &current.Result{CNIVersion: current.ImplementedSpecVersion}
	if prev != nil {
		before, err := current.NewResultFromResult(prev)
		if err != nil {
			return nil, fmt.Errorf("prevResult: %w", err)
		}
		res = before
	}
	if a.HostPort != "" {
		res.Interfaces = append(res.Interfaces, &current.Interface{Name: a.HostPort})
	}
	res.Interfaces = append(res.Interfaces, &current.Interface{Name: ifName, Mac: a.MAC, Mtu: a.MTU, Sandbox: netns})
	index := len(res.Interfaces) - 1
	for _, ip := range []struct{ cidr, gateway string }{{a.IPv4, a.Gateway4}, {a.IPv6, a.Gateway6}} {
		if ip.cidr == "" {
			continue
		}
		addr, ipNet, err := net.ParseCIDR(ip.cidr)
		if err != nil {
			return nil, fmt.Errorf("address: %w", err)
		}
		res.IPs = append(res.IPs, &current.IPConfig{
			Interface: current.Int(index), Gateway: net.ParseIP(ip.gateway),
			Address: net.IPNet{IP: addr, Mask: ipNet.Mask},
		})
	}
	for _, r := range a.Routes {
		_, dst, err := net.ParseCIDR(r.Dst)
		if err != nil {
			return nil, fmt.Errorf("route: %w", err)
		}
		res.Routes = append(res.Routes, &types.Route{Dst: *dst, GW: net.ParseIP(r.Gateway)})
	}
	return res, nil
}
