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
			leaf("create", "create a network", name, networkFlags(), createNetwork),
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

func networkFlags() []cli.Flag {
	return []cli.Flag{
		tenantFlag(),
		&cli.StringFlag{Name: "subnet", Aliases: []string{"s"}, Usage: "IPv4 subnet, `ADDRESS/LENGTH` or FIRST-LAST/LENGTH"},
		&cli.StringFlag{Name: "gateway", Aliases: []string{"g"}, Usage: "IPv4 `ADDRESS` of the gateway"},
		&cli.StringFlag{Name: "subnetv6", Aliases: []string{"s6"}, Usage: "IPv6 subnet, `ADDRESS/LENGTH`"},
		&cli.StringFlag{Name: "gatewayv6", Aliases: []string{"g6"}, Usage: "IPv6 `ADDRESS` of the gateway"},
		&cli.StringFlag{Name: "encap", Aliases: []string{"e"}, Usage: "`vlan or vxlan`", Value: "vxlan"},
		&cli.IntFlag{Name: "pkt-tag", Aliases: []string{"p"}, Usage: "VLAN or VNI, `NUMBER`; 0 = the lowest free"},
		&cli.StringFlag{Name: "nw-type", Aliases: []string{"n"}, Usage: "`data or infra`", Value: "data"},
		&cli.StringFlag{Name: "nw-tag", Aliases: []string{"tag"}, Usage: "`NAME` of the network towards container runtimes"},
	}
}

func createNetwork(ctx context.Context, cmd *cli.Command) error {
	n := &contivmodel.Network{
		TenantName:  cmd.String("tenant"),
		NetworkName: cmd.Args().First(),
		Encap:       cmd.String("encap"),
		PktTag:      cmd.Int("pkt-tag"),
		Subnet:      cmd.String("subnet"),
		Gateway:     cmd.String("gateway"),
		IPv6Subnet:  cmd.String("subnetv6"),
		IPv6Gateway: cmd.String("gatewayv6"),
		NwType:      cmd.String("nw-type"),
		CfgdTag:     cmd.String("nw-tag"),
	}
	if n.Subnet == "" {
		return misuse("Subnet is required")
	}
	for _, gw := range []string{n.Gateway, n.IPv6Gateway} {
		if _, err := netip.ParseAddr(gw); gw != "" && err != nil {
			return misuse("Invalid gateway %q: expected an IP address", gw)
		}
	}
	return create(ctx, cmd, contivmodel.NetworkKind(), n, "Creating network "+inTenant(cmd, n.NetworkName))
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
