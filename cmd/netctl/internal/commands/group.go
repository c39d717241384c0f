package commands

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func groupCommands() *cli.Command {
	kind := contivmodel.EndpointGroupKind()
	name := arguments{names: "GROUP", count: 1, missing: "Group name required"}
	both := arguments{names: "NETWORK GROUP", count: 2, missing: "Network and group name required"}
	return &cli.Command{
		Name: "group", Usage: "endpoint groups: containers of a network that are treated alike",
		Commands: []*cli.Command{
			leaf("create", "create a group, or replace what an existing one refers to", both, groupFlags(), createGroup),
			leaf("rm", "delete a group", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				return remove(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()), "")
			}),
			leaf("inspect", "show a group with its endpoints", name, []cli.Flag{tenantFlag()},
				func(ctx context.Context, cmd *cli.Command) error {
					return inspect(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()))
				}),
			leaf("ls", "list groups", noArguments(), []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, groupListing().list),
		},
	}
}

func groupFlags() []cli.Flag {
	return []cli.Flag{
		tenantFlag(),
		&cli.StringSliceFlag{Name: "policy", Aliases: []string{"p"}, Usage: "`NAME` of a policy; may be repeated"},
		&cli.StringFlag{Name: "networkprofile", Aliases: []string{"n"}, Usage: "`NAME` of a net profile"},
		&cli.StringSliceFlag{Name: "external-contract", Aliases: []string{"e"}, Usage: "`NAME` of an external contracts group; may be repeated"},
		&cli.StringFlag{Name: "ip-pool", Aliases: []string{"r"}, Usage: "addresses of the group, `FIRST-LAST`"},
		&cli.StringFlag{Name: "epg-tag", Aliases: []string{"tag"}, Usage: "`NAME` of the group towards container runtimes"},
	}
}

func createGroup(ctx context.Context, cmd *cli.Command) error {
	g := &contivmodel.EndpointGroup{
		TenantName:       cmd.String("tenant"),
		NetworkName:      cmd.Args().Get(0),
		GroupName:        cmd.Args().Get(1),
		Policies:         cmd.StringSlice("policy"),
		NetProfile:       cmd.String("networkprofile"),
		ExtContractsGrps: cmd.StringSlice("external-contract"),
		IPPool:           cmd.String("ip-pool"),
		CfgdTag:          cmd.String("epg-tag"),
	}
	return create(ctx, cmd, contivmodel.EndpointGroupKind(), g, "Creating EndpointGroup "+inTenant(cmd, g.GroupName))
}

func groupListing() listing[contivmodel.EndpointGroup, contivmodel.EndpointGroupOper] {
	return listing[contivmodel.EndpointGroup, contivmodel.EndpointGroupOper]{
		kind:   contivmodel.EndpointGroupKind(),
		tenant: func(g *contivmodel.EndpointGroup) string { return g.TenantName },
		name:   func(g *contivmodel.EndpointGroup) string { return g.GroupName },
		table: table{
			headers: []string{"Tenant", "Group", "Network", "IP Pool", "CfgdTag", "Policies", "Network profile"},
			dashes:  []int{6, 5, 7, 7, 7, 8, 15},
		},
		row: func(g *contivmodel.EndpointGroup) []string {
			return []string{g.TenantName, g.GroupName, g.NetworkName, g.IPPool, g.CfgdTag, strings.Join(g.Policies, ","), g.NetProfile}
		},
	}
}
