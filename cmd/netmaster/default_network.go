package main

import (
	"fmt"
	"net/netip"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/utils/cliconf"
)

// defaultNetwork is the network that a new cluster has from the start, if it is to have
// one.
type defaultNetwork struct{ subnet, gateway, subnet6, gateway6 string }

func (d *defaultNetwork) flags() []cli.Flag {
	flag := func(name, variable, usage string, to *string) cli.Flag {
		return &cli.StringFlag{Name: name, Category: "network", Destination: to, Sources: env.Var(variable), Usage: usage}
	}
	return []cli.Flag{
		flag("default-subnet", "DEFAULT_SUBNET", "IPv4 `subnet` of the network "+daemon.DefaultNetwork+", which a new cluster then has from the start", &d.subnet),
		flag("default-gateway", "DEFAULT_GATEWAY", "`address` of its gateway (default: the first of the subnet)", &d.gateway),
		flag("default-subnet-v6", "DEFAULT_SUBNET_V6", "its IPv6 `subnet`", &d.subnet6),
		flag("default-gateway-v6", "DEFAULT_GATEWAY_V6", "`address` of its IPv6 gateway (default: the first of the subnet)", &d.gateway6),
	}
}

// network returns the network, or nil for none. encap is vlan or vxlan.
func (d *defaultNetwork) network(encap string) (*contivmodel.Network, error) {
	if d.subnet == "" {
		for flag, value := range map[string]string{"gateway": d.gateway, "subnet-v6": d.subnet6, "gateway-v6": d.gateway6} {
			if value != "" {
				return nil, cliconf.Usagef("--default-%s requires --default-subnet", flag)
			}
		}
		return nil, nil
	}
	gateway, err := gatewayIn("--default-subnet", d.subnet, "--default-gateway", d.gateway, netip.Addr.Is4)
	if err != nil {
		return nil, err
	}
	n := &contivmodel.Network{
		TenantName: "default", NetworkName: daemon.DefaultNetwork, Encap: encap, Subnet: d.subnet, Gateway: gateway,
	}
	if d.subnet6 == "" && d.gateway6 == "" {
		return n, nil
	}
	n.IPv6Subnet = d.subnet6
	n.IPv6Gateway, err = gatewayIn("--default-subnet-v6", d.subnet6, "--default-gateway-v6", d.gateway6, netip.Addr.Is6)
	return n, err
}

// gatewayIn checks a subnet and returns the address of its gateway.
func gatewayIn(subnetFlag, subnet, gatewayFlag, gateway string, family func(netip.Addr) bool) (string, error) {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil || !family(prefix.Addr()) || prefix.Masked() != prefix || prefix.IsSingleIP() {
		return "", cliconf.Usagef("%s %q: expected a subnet like %s", subnetFlag, subnet, map[bool]string{true: "20.1.0.0/16", false: "fd00:20::/64"}[family(netip.IPv4Unspecified())])
	}
	if gateway == "" {
		return fmt.Sprint(prefix.Addr().Next()), nil
	}
	a, err := netip.ParseAddr(gateway)
	if err != nil || !prefix.Contains(a) || a == prefix.Addr() {
		return "", cliconf.Usagef("%s %q: expected an address of %s", gatewayFlag, gateway, prefix)
	}
	return a.String(), nil
}
