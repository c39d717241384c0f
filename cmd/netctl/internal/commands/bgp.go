package commands

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

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

func bgpOptions() []option {
	return []option{
		{field: "routerip", name: "router-ip", usage: "the speaker's own address, `ADDRESS/LENGTH`"},
		{field: "as", name: "as", usage: "the speaker's own autonomous system, `NUMBER`"},
		{field: "neighbor-as", name: "neighbor-as", usage: "the neighbor's autonomous system, `NUMBER`"},
		{field: "neighbor", name: "neighbor", usage: "the neighbor's `ADDRESS`"},
		{field: "routerip6", name: "router-ip6", usage: "the speaker's own IPv6 address, `ADDRESS/LENGTH`; without it no IPv6 is announced"},
		{field: "neighbors", name: "more-neighbors", usage: "further neighbors, each `ADDRESS[@NUMBER]`"},
		{field: "password", name: "password", usage: "`SECRET` that signs the sessions (RFC 2385); others on this host can see it, unlike with --password-file"},
	}
}

func bgpFlags() []cli.Flag {
	return append(fieldFlags(contivmodel.BgpKind(), bgpOptions()),
		&cli.StringFlag{Name: "password-file", Usage: "`FILE` with the secret; - for stdin"},
		&cli.BoolFlag{Name: "ttl-security", Usage: "accept sessions from the link only (RFC 5082); neighbors must do the same"})
}

// readBgpPassword takes the password from a file or from stdin, where no process list shows
// it.
func readBgpPassword(cmd *cli.Command, b *contivmodel.Bgp) error {
	path := cmd.String("password-file")
	switch {
	case path == "":
		return nil
	case b.Password != "":
		return misuse("--password and --password-file do not go together")
	}
	in := cmd.Root().Reader
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return &failure{status: exitLocal, err: fmt.Errorf("read the password: %w", err)}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxBgpPassword))
	if err != nil {
		return &failure{status: exitLocal, err: fmt.Errorf("read the password: %w", err)}
	}
	b.Password = strings.TrimRight(string(text), "\r\n")
	return nil
}

// maxBgpPassword bounds what is read, in bytes; netmaster says how long one may be.
const maxBgpPassword = 1 << 10

func createBgp(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.BgpKind()
	b := &contivmodel.Bgp{Hostname: cmd.Args().First()}
	fill(cmd, kind, b, bgpOptions(), nil)
	if err := readBgpPassword(cmd, b); err != nil {
		return err
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
	return put(ctx, cmd, c, kind, b, "")
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
