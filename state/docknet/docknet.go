// Package docknet says which docker network stands for which network or group of
// Contiv, under which name, and what the docker network is made of.
//
//	network N of tenant default    N        group G of tenant default    G
//	network N of tenant T          N/T      group G of tenant T          G/T
package docknet

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/dockerd"
)

// DefaultTenant is the tenant that docker networks do not name.
const DefaultTenant = "default"

// Label marks the docker networks Contiv has made; its value is the Key of what they stand for.
const Label = "io.contiv.docknet"

// Options of docker networks, of their IPAM driver or of both.
const (
	OptionTenant  = "tenant"
	OptionNetwork = "network"
	OptionGroup   = "group"
	OptionTag     = "contiv-tag"
	optionEncap   = "encap"
	optionPktTag  = "pkt-tag"
)

// Name is the name of the docker network that stands for a network, or for a group of it.
func Name(p state.NetworkRef) string {
	name := p.Network
	if p.Group != "" {
		name = p.Group
	}
	if p.Tenant != DefaultTenant {
		name += "/" + p.Tenant
	}
	return name
}

// Key is the end of the key of that docker network's record; without a group it ends in a
// dot.
func Key(p state.NetworkRef) string { return p.Tenant + "." + p.Network + "." + p.Group }

// ofGroup names a group.
func ofGroup(g state.EndpointGroup) state.NetworkRef {
	return state.NetworkRef{Tenant: g.TenantName, Network: g.NetworkName, Group: g.GroupName}
}

// Topology is what networks and groups there are.
type Topology struct {
	Networks []state.Network
	Groups   []state.EndpointGroup
}

// Network finds a network by its id.
func (t Topology) Network(id string) (state.Network, bool) {
	for _, n := range t.Networks {
		if n.ID == id {
			return n, true
		}
	}
	return state.Network{}, false
}

// Tagged finds the group with a tag, else the network with it.
func (t Topology) Tagged(tag string) (state.NetworkRef, bool) {
	for _, g := range t.Groups {
		if g.GroupTag == tag {
			return ofGroup(g), true
		}
	}
	for _, n := range t.Networks {
		if n.NetworkTag == tag {
			return state.NetworkRef{Tenant: n.Tenant, Network: n.NetworkName}, true
		}
	}
	return state.NetworkRef{}, false
}

// Named finds the network or group whose docker network has a name. The name may also be
// <group>.<network>[/<tenant>], as early versions had it.
func (t Topology) Named(name string) (state.NetworkRef, bool) {
	left, tenant, given := strings.Cut(name, "/")
	if !given {
		tenant = DefaultTenant
	}
	for _, g := range t.Groups {
		if g.TenantName == tenant && (g.GroupName == left || g.GroupName+"."+g.NetworkName == left) {
			return ofGroup(g), true
		}
	}
	for _, n := range t.Networks {
		if n.Tenant == tenant && n.NetworkName == left {
			return state.NetworkRef{Tenant: tenant, Network: left}, true
		}
	}
	return state.NetworkRef{}, false
}

// Has reports whether a network or group exists.
func (t Topology) Has(p state.NetworkRef) bool {
	if p.Group != "" {
		return slices.ContainsFunc(t.Groups, func(g state.EndpointGroup) bool {
			return g.TenantName == p.Tenant && g.NetworkName == p.Network && g.GroupName == p.Group
		})
	}
	_, ok := t.Network(p.NetworkID())
	return ok
}

// OfOptions reads from the options of a docker network, or of its IPAM driver, what it
// stands for.
func OfOptions(options map[string]string) (state.NetworkRef, bool) {
	p := state.NetworkRef{Tenant: options[OptionTenant], Network: options[OptionNetwork], Group: options[OptionGroup]}
	if p.Tenant == "" {
		p.Tenant = DefaultTenant
	}
	return p, p.Network != ""
}

// Of finds what a docker network stands for: by its options, by its tag, by its name.
func (t Topology) Of(n dockerd.Network) (state.NetworkRef, bool) {
	for _, options := range []map[string]string{n.Options, n.IPAMOptions} {
		if p, ok := OfOptions(options); ok {
			return p, true
		}
		if tag := options[OptionTag]; tag != "" {
			return t.Tagged(tag)
		}
	}
	return t.Named(n.Name)
}

// Ours reports whether Contiv, or the original, has made a docker network, and not a
// user by hand.
func Ours(n dockerd.Network) bool {
	return n.Labels[Label] != "" || n.Options[optionPktTag] != "" && n.Options[optionEncap] != "" && n.IPAMOptions[OptionNetwork] != ""
}

// Wanted returns the docker networks that are to be there, by their names: one for each
// data network, except where the fabric is ACI, and one for each group.
func (t Topology) Wanted(driver string, aci bool) map[string]dockerd.Network {
	out := map[string]dockerd.Network{}
	byID := map[string]state.Network{}
	for _, n := range t.Networks {
		byID[n.ID] = n
		if n.NwType != state.NetworkInfra && !aci {
			w := wanted(state.NetworkRef{Tenant: n.Tenant, Network: n.NetworkName}, n, n.NetworkTag, driver)
			out[w.Name] = w
		}
	}
	for _, g := range t.Groups {
		if n, ok := byID[state.NetworkID(g.NetworkName, g.TenantName)]; ok {
			w := wanted(ofGroup(g), n, g.GroupTag, driver)
			out[w.Name] = w
		}
	}
	return out
}

func wanted(p state.NetworkRef, n state.Network, tag, driver string) dockerd.Network {
	w := dockerd.Network{
		Name: Name(p), Driver: driver, IPAMDriver: driver,
		IPAMOptions: map[string]string{OptionTenant: p.Tenant, OptionNetwork: p.Network},
		Options:     map[string]string{OptionTenant: p.Tenant, OptionNetwork: p.Network, optionEncap: n.PktTagType, OptionTag: tag},
		Labels:      map[string]string{Label: Key(p)},
	}
	if p.Group != "" {
		w.IPAMOptions[OptionGroup], w.Options[OptionGroup] = p.Group, p.Group
	}
	w.Options[optionPktTag] = strconv.Itoa(n.PktTag)
	if n.PktTagType == state.EncapVXLAN {
		w.Options[optionPktTag] = strconv.Itoa(n.ExtPktTag)
	}
	if s, ok := subnet(n.SubnetIP, n.SubnetLen, n.Gateway); ok {
		w.Subnets = append(w.Subnets, s)
	}
	if s, ok := subnet(n.IPv6Subnet, n.IPv6Len, n.IPv6Gateway); ok {
		w.Subnets, w.IPv6 = append(w.Subnets, s), true
	}
	return w
}

// Subnets returns the subnets of a network, IPv4 first.
func Subnets(n state.Network) (v4, v6 dockerd.Subnet) {
	v4, _ = subnet(n.SubnetIP, n.SubnetLen, n.Gateway)
	v6, _ = subnet(n.IPv6Subnet, n.IPv6Len, n.IPv6Gateway)
	return v4, v6
}

// subnet reads a subnet of a record; what netmaster never writes counts as none.
func subnet(ip string, bits uint, gateway string) (dockerd.Subnet, bool) {
	a, err := netip.ParseAddr(ip)
	if err != nil {
		return dockerd.Subnet{}, false
	}
	p, err := a.Prefix(int(bits))
	if err != nil {
		return dockerd.Subnet{}, false
	}
	gw, err := netip.ParseAddr(gateway)
	if err != nil {
		gw = netip.Addr{}
	}
	return dockerd.Subnet{Prefix: p, Gateway: gw}, true
}

// SameDriver reports whether two names are those of the same driver: a managed plugin of
// tag latest may be named without it.
func SameDriver(a, b string) bool {
	return strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

// Same reports whether an Engine's network is what is wanted. An Engine that was given
// no gateway may show one of its own.
func Same(want, have dockerd.Network) bool {
	if !SameDriver(want.Driver, have.Driver) || !SameDriver(want.IPAMDriver, have.IPAMDriver) || want.IPv6 != have.IPv6 ||
		!maps.Equal(want.Options, have.Options) || !maps.Equal(want.IPAMOptions, have.IPAMOptions) || len(want.Subnets) != len(have.Subnets) {
		return false
	}
	for _, w := range want.Subnets {
		if !slices.ContainsFunc(have.Subnets, func(h dockerd.Subnet) bool {
			return w.Prefix == h.Prefix && (!w.Gateway.IsValid() || w.Gateway == h.Gateway)
		}) {
			return false
		}
	}
	return true
}
