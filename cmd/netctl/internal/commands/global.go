package commands

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
)

func globalCommands() *cli.Command {
	ignored := []cli.Flag{tenantFlag(), allFlag(), jsonFlag()}
	return &cli.Command{
		Name: "global", Usage: "settings of the whole cluster",
		Commands: []*cli.Command{
			leaf("info", "show the settings", noArguments(), ignored, info(contivmodel.GlobalKind(), globalText)),
			leaf("inspect", "show the settings with the tags in use", noArguments(), nil,
				func(ctx context.Context, cmd *cli.Command) error {
					return inspect(ctx, cmd, contivmodel.GlobalKind(), contivmodel.GlobalName)
				}),
			leaf("set", "change the settings that are given", noArguments(), globalFlags(), globalSet),
		},
	}
}

func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "fabric-mode", Aliases: []string{"f"}, Usage: "`aci, aci-opflex or default`"},
		&cli.StringFlag{Name: "vlan-range", Aliases: []string{"v"}, Usage: "VLANs to hand out, `LOW-HIGH`"},
		&cli.StringFlag{Name: "vxlan-range", Aliases: []string{"x"}, Usage: "VNIs to hand out, `LOW-HIGH`"},
		&cli.StringFlag{Name: "fwd-mode", Aliases: []string{"b"}, Usage: "`bridge or routing`"},
		&cli.StringFlag{Name: "arp-mode", Aliases: []string{"a"}, Usage: "`proxy or flood`"},
		&cli.StringFlag{Name: "private-subnet", Aliases: []string{"s"}, Usage: "addresses for use inside the hosts, `ADDRESS/16`"},
	}
}

func globalText(g *contivmodel.Global) string {
	return fmt.Sprintf("Fabric mode: %s\nForward mode: %s\nARP mode: %s\nVlan Range: %s\nVxlan range: %s\nPrivate subnet: %s\n",
		g.NetworkInfraType, g.FwdMode, g.ArpMode, g.Vlans, g.Vxlans, g.PvtSubnet)
}

// globalSet reads the settings, changes what is given, and writes them back.
func globalSet(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	g, err := client.Get(ctx, c, contivmodel.GlobalKind(), contivmodel.GlobalName)
	if err != nil {
		return refused(err)
	}
	for option, field := range map[string]*string{
		"fabric-mode": &g.NetworkInfraType, "vlan-range": &g.Vlans, "vxlan-range": &g.Vxlans,
		"fwd-mode": &g.FwdMode, "arp-mode": &g.ArpMode, "private-subnet": &g.PvtSubnet,
	} {
		if v := cmd.String(option); v != "" {
			*field = v
		}
	}
	return put(ctx, cmd, c, contivmodel.GlobalKind(), g, "")
}
