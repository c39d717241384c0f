package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

func aciGwCommands() *cli.Command {
	ignored := []cli.Flag{tenantFlag(), allFlag(), jsonFlag()}
	return &cli.Command{
		Name: "aci-gw", Usage: "settings of the gateway to an ACI fabric",
		Commands: []*cli.Command{
			leaf("info", "show the settings", noArguments(), ignored, info(contivmodel.AciGwKind(), aciGwText)),
			leaf("inspect", "show the settings and the objects that use them", noArguments(), nil, func(ctx context.Context, cmd *cli.Command) error {
				return inspect(ctx, cmd, contivmodel.AciGwKind(), contivmodel.AciGwName)
			}),
			leaf("set", "change settings", noArguments(), fieldFlags(contivmodel.AciGwKind(), aciGwOptions()), aciGwSet),
		},
	}
}

func aciGwOptions() []option {
	return []option{
		{field: "pathBindings", name: "path-bindings", alias: "p", usage: "`topology/pod-N/paths-N/pathep-[ethM/M]`, separated by commas"},
		{field: "nodeBindings", name: "node-bindings", alias: "n", usage: "`topology/pod-N/node-N`, separated by commas"},
		{field: "physicalDomain", name: "phys-dom", alias: "d", usage: "`NAME` of the physical domain"},
		{field: "enforcePolicies", name: "enforce-policies", alias: "e", usage: "`yes or no`; yes until set"},
		{field: "includeCommonTenant", name: "include-common-tenant", alias: "i", usage: "`yes or no`; no until set"},
	}
}

func aciGwText(g *contivmodel.AciGw) string {
	return fmt.Sprintf("Path bindings: %s\nNode bindings: %s\nPhysical domain: %s\nEnforce policies: %s\nInclude Common-Tenant: %s\n",
		g.PathBindings, g.NodeBindings, g.PhysicalDomain, g.EnforcePolicies, g.IncludeCommonTenant)
}

// aciGwSet reads the settings, if there are any yet, changes what is given, and writes
// them back.
func aciGwSet(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	kind := contivmodel.AciGwKind()
	g, err := client.Get(ctx, c, kind, contivmodel.AciGwName)
	var answer *client.Error
	switch {
	case errors.As(err, &answer) && answer.Text == kind.NotFound().Error():
		g = kind.Make()
	case err != nil:
		return refused(err)
	}
	fill(cmd, kind, g, aciGwOptions(), cmd.IsSet)
	return put(ctx, cmd, c, kind, g, "")
}
