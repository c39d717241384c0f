package commands

import (
	"context"
	"net/netip"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func bgpCommands() *cli.Command {
	kind := contivmodel.BgpKind()
	host := arguments{names: "HOST", count: 1, missing: "Host name required"}
	return &cli.Command{
		Name: "bgp", Usage: "BGP speakers of hosts",
		Commands: []*cli.Command{
			leaf("create", "configure the BGP speaker of a host", host, bgpFlags(), createBgp),
			leaf("rm", "remove the BGP speaker of a host", host, nil, func(ctx context.Context, cmd *cli.Command) error {
				return remove(ctx, cmd, kind, cmd.Args().First(), "Deleting Bgp router config: "+cmd.Args().First())
			}),
			leaf("inspect", "show the BGP speaker of a host with its state and routes", host, nil, func(ctx context.Context, cmd *cli.Command) error {
				return inspect(ctx, cmd, kind, cmd.Args().First())
			}),
			leaf("ls", "list BGP speakers", noArguments(), []cli.Flag{quietFlag(), jsonFlag(), watchFlag()}, bgpListing().list),
		},
	}
}

func bgpFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "router-ip", Usage: "the speaker's own address, `ADDRESS/LENGTH`"},
		&cli.StringFlag{Name: "as", Usage: "the speaker's own autonomous system, `NUMBER`"},
		&cli.StringFlag{Name: "neighbor-as", Usage: "the neighbor's autonomous system, `NUMBER`"},
		&cli.StringFlag{Name: "neighbor", Usage: "the neighbor's `ADDRESS`"},
		&cli.StringFlag{Name: "router-ip6", Usage: "the speaker's own IPv6 address, `ADDRESS/LENGTH`; without it no IPv6 is announced"},
		&cli.StringSliceFlag{Name: "more-neighbors", Usage: "further neighbors, each `ADDRESS[@NUMBER]`"},
		&cli.StringFlag{Name: "password", Usage: "`SECRET` that signs the sessions (RFC 2385)"},
		&cli.BoolFlag{Name: "ttl-security", Usage: "take no session from beyond the link (RFC 5082); the neighbors must do the same"},
	}
}

func createBgp(ctx context.Context, cmd *cli.Command) error {
	b := &contivmodel.Bgp{
		Hostname: cmd.Args().First(), Routerip: cmd.String("router-ip"), As: cmd.String("as"),
		NeighborAs: cmd.String("neighbor-as"), Neighbor: cmd.String("neighbor"),
		Routerip6: cmd.String("router-ip6"), Neighbors: cmd.StringSlice("more-neighbors"), Password: cmd.String("password"),
	}
	if cmd.Bool("ttl-security") {
		b.TTLSecurity = "yes"
	}
	if _, err := netip.ParsePrefix(b.Routerip); err != nil {
		return misuse("Invalid router-ip %q: expected ADDRESS/LENGTH", b.Routerip)
	}
	if _, err := netip.ParseAddr(b.Neighbor); err != nil {
		return misuse("Invalid neighbor %q: expected an IP address", b.Neighbor)
	}
	if b.As == "" || b.NeighborAs == "" {
		return misuse("as and neighbor-as are required")
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	return put(ctx, cmd, c, contivmodel.BgpKind(), b, "")
}

func bgpListing() listing[contivmodel.Bgp, contivmodel.BgpOper] {
	return listing[contivmodel.Bgp, contivmodel.BgpOper]{
		kind:  contivmodel.BgpKind(),
		name:  func(b *contivmodel.Bgp) string { return b.Hostname },
		table: table{headers: []string{"HostName", "RouterIP", "AS", "Neighbor", "NeighborAS"}, dashes: []int{9, 8, 7, 8, 7}},
		row: func(b *contivmodel.Bgp) []string {
			return []string{b.Hostname, b.Routerip, b.As, b.Neighbor, b.NeighborAs}
		},
	}
}
