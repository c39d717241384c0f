package commands

import (
	"context"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func netprofileCommands() *cli.Command {
	kind := contivmodel.NetprofileKind()
	name := arguments{names: "PROFILE", count: 1, missing: "Net profile name required"}
	return &cli.Command{
		Name: "netprofile", Usage: "net profiles: bandwidth limits and DSCP for groups",
		Commands: []*cli.Command{
			leaf("create", "create a net profile, or change an existing one and the groups that use it", name, fieldFlags(kind, netprofileOptions()), createNetprofile),
			leaf("rm", "delete a net profile", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				return remove(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()), "")
			}),
			leaf("inspect", "show a net profile with the groups that use it", name, []cli.Flag{tenantFlag()},
				func(ctx context.Context, cmd *cli.Command) error {
					return inspect(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()))
				}),
			leaf("ls", "list net profiles", noArguments(), []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, netprofileListing().list),
		},
	}
}

func netprofileOptions() []option {
	return []option{
		tenantOption(),
		{field: "bandwidth", name: "bandwidth", alias: "b", usage: "bandwidth limit per endpoint, `RATE` such as 10mbps"},
		{field: "DSCP", name: "dscp", alias: "d", usage: "traffic class, `NUMBER` of 0-63"},
		{field: "burst", name: "burst", alias: "s", usage: "burst size in `KILOBYTES`"},
	}
}

func createNetprofile(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.NetprofileKind()
	p := &contivmodel.Netprofile{ProfileName: cmd.Args().First()}
	fill(cmd, kind, p, netprofileOptions(), nil)
	return create(ctx, cmd, kind, p, "Creating netprofile "+inTenant(cmd, p.ProfileName))
}

func netprofileListing() listing[contivmodel.Netprofile, contivmodel.NoOper] {
	return listing[contivmodel.Netprofile, contivmodel.NoOper]{
		kind:   contivmodel.NetprofileKind(),
		tenant: func(p *contivmodel.Netprofile) string { return p.TenantName },
		name:   func(p *contivmodel.Netprofile) string { return p.ProfileName },
		table: table{
			headers: []string{"Name", "Tenant", "Bandwidth", "DSCP", "burst size"},
			dashes:  []int{6, 6, 9, 8, 10},
		},
		row: func(p *contivmodel.Netprofile) []string {
			return []string{p.ProfileName, p.TenantName, showRate(p.Bandwidth), strconv.Itoa(p.DSCP), strconv.Itoa(p.Burst)}
		},
	}
}

// showRate writes a bandwidth, whatever the user has written it like, as a number and
// Kbps, Mbps or Gbps.
func showRate(s string) string {
	number := strings.TrimRight(s, "bpskmgKMG ")
	unit := strings.TrimSpace(s[len(number):])
	if number == "" || unit == "" {
		return s
	}
	return number + strings.ToUpper(unit[:1]) + "bps"
}
