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
			leaf("inspect", "show the settings with what makes use of them", noArguments(), nil, func(ctx context.Context, cmd *cli.Command) error {
				return inspect(ctx, cmd, contivmodel.AciGwKind(), contivmodel.AciGwName)
			}),
			leaf("set", "change the settings that are given", noArguments(), aciGwFlags(), aciGwSet),
		},
	}
}

func aciGwFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "path-bindings", Aliases: []string{"p"}, Usage: "`topology/pod-N/paths-N/pathep-[ethM/M]`, separated by commas"},
		&cli.StringFlag{Name: "node-bindings", Aliases: []string{"n"}, Usage: "`topology/pod-N/node-N`, separated by commas"},
		&cli.StringFlag{Name: "phys-dom", Aliases: []string{"d"}, Usage: "`NAME` of the physical domain"},
		&cli.StringFlag{Name: "enforce-policies", Aliases: []string{"e"}, Usage: "`yes or no`; yes until set"},
		&cli.StringFlag{Name: "include-common-tenant", Aliases: []string{"i"}, Usage: "`yes or no`; no until set"},
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
	g, err := client.Get(ctx, c, contivmodel.AciGwKind(), contivmodel.AciGwName)
	var answer *client.Error
	switch {
	case errors.As(err, &answer) && answer.Text == contivmodel.AciGwKind().NotFound().Error():
		g = &contivmodel.AciGw{Name: contivmodel.AciGwName, EnforcePolicies: "yes", IncludeCommonTenant: "no"}
	case err != nil:
		return refused(err)
	}
	for option, field := range map[string]*string{
		"path-bindings": &g.PathBindings, "node-bindings": &g.NodeBindings, "phys-dom": &g.PhysicalDomain,
		"enforce-policies": &g.EnforcePolicies, "include-common-tenant": &g.IncludeCommonTenant,
	} {
		if cmd.IsSet(option) {
			*field = cmd.String(option)
		}
	}
	return put(ctx, cmd, c, contivmodel.AciGwKind(), g, "")
}
