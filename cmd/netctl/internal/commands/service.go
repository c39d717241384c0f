package commands

import (
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func serviceCommands() *cli.Command {
	kind := contivmodel.ServiceLBKind()
	name := arguments{names: "SERVICE", count: 1, missing: "Service name required"}
	group := arguments{names: "SERVICE", count: 1, missing: "Service group name required"}
	return &cli.Command{
		Name: "service", Usage: "services: load-balanced addresses of containers",
		Commands: []*cli.Command{
			leaf("create", "create a service, or replace an existing one", name, fieldFlags(kind, serviceOptions()), createService),
			leaf("rm", "delete a service", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				svc, tenant := cmd.Args().First(), serviceTenant(cmd)
				return remove(ctx, cmd, kind, tenant+":"+svc, "Deleting Service  "+svc+","+tenant)
			}),
			leaf("inspect", "show a service with its address and providers", group, []cli.Flag{tenantFlag()},
				func(ctx context.Context, cmd *cli.Command) error {
					return inspect(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()))
				}),
			leaf("ls", "list services", noArguments(), []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, serviceListing().list),
		},
	}
}

func serviceOptions() []option {
	return []option{
		tenantOption(),
		{field: "networkName", name: "network", alias: "s", usage: "`NAME` of the network the service's address is in"},
		{field: "selectors", name: "selector", alias: "l", usage: "a label of the containers, `KEY=VALUE`; may be repeated"},
		{field: "ports", name: "port", alias: "p", usage: "`SERVICEPORT:PROVIDERPORT:PROTOCOL`; may be repeated"},
		{field: "ipAddress", name: "preferred-ip", alias: "ip", usage: "requested `ADDRESS` of the service"},
	}
}

// serviceTenant is the tenant of the options; an empty one means the default, too.
func serviceTenant(cmd *cli.Command) string {
	if tenant := cmd.String("tenant"); tenant != "" {
		return tenant
	}
	return contivmodel.DefaultTenant
}

func createService(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.ServiceLBKind()
	s := &contivmodel.ServiceLB{ServiceName: cmd.Args().First()}
	fill(cmd, kind, s, serviceOptions(), nil)
	s.TenantName = serviceTenant(cmd)
	return create(ctx, cmd, kind, s, "Creating ServiceLB "+s.TenantName+":"+s.ServiceName)
}

func serviceListing() listing[contivmodel.ServiceLB, contivmodel.ServiceLBOper] {
	return listing[contivmodel.ServiceLB, contivmodel.ServiceLBOper]{
		kind:   contivmodel.ServiceLBKind(),
		tenant: func(s *contivmodel.ServiceLB) string { return s.TenantName },
		name:   func(s *contivmodel.ServiceLB) string { return s.ServiceName },
		table:  table{headers: []string{"ServiceName", "Tenant", "Network", "Selectors"}, dashes: []int{9, 8, 7, 7}, padded: true},
		row: func(s *contivmodel.ServiceLB) []string {
			return []string{s.ServiceName, s.TenantName, s.NetworkName, "[" + strings.Join(s.Selectors, " ") + "]"}
		},
	}
}
