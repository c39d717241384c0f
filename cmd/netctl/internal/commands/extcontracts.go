package commands

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func externalContractsCommands() *cli.Command {
	kind := contivmodel.ExtContractsGroupKind()
	name := arguments{names: "CONTRACTS-GROUP", count: 1, missing: "Contracts group name required"}
	return &cli.Command{
		Name: "external-contracts", Usage: "external contracts groups of an ACI fabric, provided or consumed by groups",
		Commands: []*cli.Command{
			leaf("create", "create an external contracts group", name, contractsFlags(), createContracts),
			leaf("rm", "delete an external contracts group", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				group := cmd.Args().First()
				return remove(ctx, cmd, kind, inTenant(cmd, group), "Deleting external contracts group "+group+" in tenant "+cmd.String("tenant"))
			}),
			leaf("ls", "list external contracts groups", noArguments(), []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, contractsListing().list),
		},
	}
}

func contractsOptions() []option {
	return []option{
		tenantOption(),
		{field: "contracts", name: "contract", alias: "a", usage: "distinguished `NAME` of a contract; may be repeated"},
	}
}

func contractsFlags() []cli.Flag {
	return slices.Insert(fieldFlags(contivmodel.ExtContractsGroupKind(), contractsOptions()), 1,
		cli.Flag(&cli.BoolFlag{Name: "consumed", Aliases: []string{"c"}, Usage: "the contracts are consumed"}),
		cli.Flag(&cli.BoolFlag{Name: "provided", Aliases: []string{"p"}, Usage: "the contracts are provided"}))
}

func createContracts(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.ExtContractsGroupKind()
	g := &contivmodel.ExtContractsGroup{ContractsGroupName: cmd.Args().First(), ContractsType: contivmodel.ContractsProvided}
	fill(cmd, kind, g, contractsOptions(), nil)
	if cmd.Bool("consumed") == cmd.Bool("provided") {
		return misuse("Exactly one of consumed and provided is required")
	}
	if cmd.Bool("consumed") {
		g.ContractsType = contivmodel.ContractsConsumed
	}
	if len(g.Contracts) == 0 {
		return misuse("At least one contract is required")
	}
	return create(ctx, cmd, kind, g, "Creating ExternalContracts "+inTenant(cmd, g.ContractsGroupName))
}

func contractsListing() listing[contivmodel.ExtContractsGroup, contivmodel.NoOper] {
	return listing[contivmodel.ExtContractsGroup, contivmodel.NoOper]{
		kind:   contivmodel.ExtContractsGroupKind(),
		tenant: func(g *contivmodel.ExtContractsGroup) string { return g.TenantName },
		name:   func(g *contivmodel.ExtContractsGroup) string { return g.ContractsGroupName },
		table:  table{headers: []string{"Tenant", "Name", "", "Type", "", "Contracts"}, dashes: []int{6, 6, 0, 6, 0, 7}},
		row: func(g *contivmodel.ExtContractsGroup) []string {
			return []string{g.TenantName, g.ContractsGroupName, "", g.ContractsType, "", "[" + strings.Join(g.Contracts, " ") + "]"}
		},
	}
}
