package commands

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func tenantCommands() *cli.Command {
	kind := contivmodel.TenantKind()
	name := arguments{names: "TENANT", count: 1, missing: "Tenant name required"}
	return &cli.Command{
		Name: "tenant", Usage: "tenants: isolated name and address spaces",
		Commands: []*cli.Command{
			leaf("create", "create a tenant", name, nil, func(ctx context.Context, cmd *cli.Command) error {
				t := &contivmodel.Tenant{TenantName: cmd.Args().First()}
				return create(ctx, cmd, kind, t, "Creating tenant: "+t.TenantName)
			}),
			leaf("rm", "delete a tenant", name, nil, func(ctx context.Context, cmd *cli.Command) error {
				return remove(ctx, cmd, kind, cmd.Args().First(), "Deleting tenant "+cmd.Args().First())
			}),
			leaf("inspect", "show a tenant and the objects it uses", name, nil, func(ctx context.Context, cmd *cli.Command) error {
				return inspect(ctx, cmd, kind, cmd.Args().First())
			}),
			leaf("ls", "list tenants", noArguments(), []cli.Flag{quietFlag(), jsonFlag(), watchFlag()}, tenantListing().list),
		},
	}
}

func tenantListing() listing[contivmodel.Tenant, contivmodel.TenantOper] {
	return listing[contivmodel.Tenant, contivmodel.TenantOper]{
		kind:  contivmodel.TenantKind(),
		name:  func(t *contivmodel.Tenant) string { return t.TenantName },
		table: table{headers: []string{"Name"}, dashes: []int{6}, padded: true},
		row:   func(t *contivmodel.Tenant) []string { return []string{t.TenantName} },
	}
}
