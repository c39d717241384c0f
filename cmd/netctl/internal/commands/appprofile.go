package commands

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

func appProfileCommands() *cli.Command {
	kind := contivmodel.AppProfileKind()
	name := arguments{names: "PROFILE", count: 1, missing: "Profile name required"}
	groups, _ := kind.Description().Field("endpointGroups")
	flags := func() []cli.Flag {
		return []cli.Flag{
			tenantFlag(),
			&textOption{&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "`NAMES` of groups, separated by commas"}, groups},
		}
	}
	return &cli.Command{
		Name: "app-profile", Usage: "app profiles: sets of groups",
		Commands: []*cli.Command{
			leaf("create", "create an app profile, or replace the groups of an existing one", name, flags(), func(ctx context.Context, cmd *cli.Command) error {
				p := appProfile(cmd)
				return create(ctx, cmd, kind, p, "Creating AppProfile "+inTenant(cmd, p.AppProfileName))
			}),
			leaf("update", "replace the groups of an app profile", name, flags(), func(ctx context.Context, cmd *cli.Command) error {
				return create(ctx, cmd, kind, appProfile(cmd), "")
			}),
			leaf("rm", "delete an app profile", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				return remove(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()), "")
			}),
			leaf("ls", "list app profiles", noArguments(),
				[]cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, appProfileListing().list),
			leaf("group-ls", "list the groups of an app profile", name, []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag()}, listAppGroups),
		},
	}
}

func appProfile(cmd *cli.Command) *contivmodel.AppProfile {
	p := &contivmodel.AppProfile{TenantName: cmd.String("tenant"), AppProfileName: cmd.Args().First()}
	if groups := cmd.String("group"); groups != "" {
		p.EndpointGroups = strings.Split(groups, ",")
	}
	return p
}

// listAppGroups prints the groups of one app profile on one line.
func listAppGroups(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	p, err := client.Get(ctx, c, contivmodel.AppProfileKind(), inTenant(cmd, cmd.Args().First()))
	if err != nil {
		return refused(err)
	}
	return show(cmd, p, strings.Join(p.EndpointGroups, ",")+"\n")
}

func appProfileListing() listing[contivmodel.AppProfile, contivmodel.NoOper] {
	return listing[contivmodel.AppProfile, contivmodel.NoOper]{
		kind:   contivmodel.AppProfileKind(),
		tenant: func(p *contivmodel.AppProfile) string { return p.TenantName },
		name:   func(p *contivmodel.AppProfile) string { return p.AppProfileName },
		table:  table{headers: []string{"Tenant", "AppProfile", "Groups"}, dashes: []int{6, 10, 6}},
		row: func(p *contivmodel.AppProfile) []string {
			return []string{p.TenantName, p.AppProfileName, strings.Join(p.EndpointGroups, ",")}
		},
	}
}
