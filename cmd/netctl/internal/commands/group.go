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
		Name: "group", Usage: "endpoint groups: containers of a network with the same policies",
		Commands: []*cli.Command{
			leaf("create", "create a group, or replace the references of an existing one", both, fieldFlags(kind, groupOptions()), createGroup),
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

func groupOptions() []option {
	return []option{
		tenantOption(),
		{field: "policies", name: "policy", alias: "p", usage: "`NAME` of a policy; may be repeated"},
		{field: "netProfile", name: "networkprofile", alias: "n", usage: "`NAME` of a net profile"},
		{field: "extContractsGrps", name: "external-contract", alias: "e", usage: "`NAME` of an external contracts group; may be repeated"},
		{field: "ipPool", name: "ip-pool", alias: "r", usage: "addresses of the group, `FIRST-LAST`"},
		{field: "cfgdTag", name: "epg-tag", alias: "tag", usage: "`NAME` of the group towards container runtimes"},
	}
}

func createGroup(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.EndpointGroupKind()
	g := &contivmodel.EndpointGroup{NetworkName: cmd.Args().Get(0), GroupName: cmd.Args().Get(1)}
	fill(cmd, kind, g, groupOptions(), nil)
	return create(ctx, cmd, kind, g, "Creating EndpointGroup "+inTenant(cmd, g.GroupName))
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
