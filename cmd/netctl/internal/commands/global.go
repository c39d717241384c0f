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
			leaf("set", "change settings", noArguments(), fieldFlags(contivmodel.GlobalKind(), globalOptions()), globalSet),
		},
	}
}

func globalOptions() []option {
	return []option{
		{field: "networkInfraType", name: "fabric-mode", alias: "f", usage: "`aci, aci-opflex or default`"},
		{field: "vlans", name: "vlan-range", alias: "v", usage: "VLANs to allocate, `LOW-HIGH`"},
		{field: "vxlans", name: "vxlan-range", alias: "x", usage: "VNIs to allocate, `LOW-HIGH`"},
		{field: "fwdMode", name: "fwd-mode", alias: "b", usage: "`bridge or routing`"},
		{field: "arpMode", name: "arp-mode", alias: "a", usage: "`proxy or flood`"},
		{field: "pvtSubnet", name: "private-subnet", alias: "s", usage: "addresses for internal use on hosts, `ADDRESS/16`"},
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
	kind := contivmodel.GlobalKind()
	fill(cmd, kind, g, globalOptions(), func(name string) bool { return cmd.String(name) != "" })
	return put(ctx, cmd, c, kind, g, "")
}
