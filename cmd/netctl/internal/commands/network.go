package commands

import (
	"context"
	"net/netip"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func networkCommands() *cli.Command {
	kind := contivmodel.NetworkKind()
	name := arguments{names: "NETWORK", count: 1, missing: "Network name required"}
	return &cli.Command{
		Name: "network", Aliases: []string{"net"}, Usage: "networks: a subnet and its isolation tag",
		Commands: []*cli.Command{
			leaf("create", "create a network", name, fieldFlags(kind, networkOptions()), createNetwork),
			leaf("rm", "delete a network", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				key := inTenant(cmd, cmd.Args().First())
				return remove(ctx, cmd, kind, key, "Deleting network "+key)
			}),
			leaf("inspect", "show a network with its addresses and endpoints", name, []cli.Flag{tenantFlag()},
				func(ctx context.Context, cmd *cli.Command) error {
					return inspect(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()))
				}),
			leaf("ls", "list networks", noArguments(), []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, networkListing().list),
		},
	}
}

func networkOptions() []option {
	return []option{
		tenantOption(),
		{field: "subnet", name: "subnet", alias: "s", usage: "IPv4 subnet, `ADDRESS/LENGTH` or FIRST-LAST/LENGTH"},
		{field: "gateway", name: "gateway", alias: "g", usage: "IPv4 `ADDRESS` of the gateway"},
		{field: "ipv6Subnet", name: "subnetv6", alias: "s6", usage: "IPv6 subnet, `ADDRESS/LENGTH`"},
		{field: "ipv6Gateway", name: "gatewayv6", alias: "g6", usage: "IPv6 `ADDRESS` of the gateway"},
		{field: "encap", name: "encap", alias: "e", usage: "`vlan or vxlan`", initial: "vxlan"},
		{field: "pktTag", name: "pkt-tag", alias: "p", usage: "VLAN or VNI, `NUMBER`; 0 = the lowest free"},
		{field: "nwType", name: "nw-type", alias: "n", usage: "`data or infra`", initial: "data"},
		{field: "cfgdTag", name: "nw-tag", alias: "tag", usage: "`NAME` of the network towards container runtimes"},
	}
}

func createNetwork(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.NetworkKind()
	n := &contivmodel.Network{NetworkName: cmd.Args().First()}
	fill(cmd, kind, n, networkOptions(), nil)
	if n.Subnet == "" {
		return misuse("Subnet is required")
	}
	for _, gw := range []string{n.Gateway, n.IPv6Gateway} {
		if _, err := netip.ParseAddr(gw); gw != "" && err != nil {
			return misuse("Invalid gateway %q: expected an IP address", gw)
		}
	}
	return create(ctx, cmd, kind, n, "Creating network "+inTenant(cmd, n.NetworkName))
}

func networkListing() listing[contivmodel.Network, contivmodel.NetworkOper] {
	return listing[contivmodel.Network, contivmodel.NetworkOper]{
		kind:   contivmodel.NetworkKind(),
		tenant: func(n *contivmodel.Network) string { return n.TenantName },
		name:   func(n *contivmodel.Network) string { return n.NetworkName },
		table: table{
			headers: []string{
				"Tenant", "Network", "Nw Type", "Encap type", "Packet tag", "Subnet", "Gateway", "IPv6Subnet", "IPv6Gateway", "Cfgd Tag ",
			},
			dashes: []int{6, 7, 7, 10, 10, 7, 6, 10, 11, 9},
		},
		row: func(n *contivmodel.Network) []string {
			return []string{
				n.TenantName, n.NetworkName, n.NwType, n.Encap, strconv.Itoa(n.PktTag), n.Subnet, n.Gateway, n.IPv6Subnet, n.IPv6Gateway, n.CfgdTag,
			}
		},
	}
}
