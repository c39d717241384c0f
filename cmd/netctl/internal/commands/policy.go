package commands

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
)

func policyCommands() *cli.Command {
	kind := contivmodel.PolicyKind()
	name := arguments{names: "POLICY", count: 1, missing: "Policy name required"}
	rule := arguments{names: "POLICY RULE-ID", count: 2, missing: "Policy name and Rule ID required"}
	return &cli.Command{
		Name: "policy", Usage: "policies: ordered sets of rules for groups",
		Commands: []*cli.Command{
			leaf("create", "create a policy, or change its mode and whether it is audited", name, fieldFlags(kind, policyOptions()), func(ctx context.Context, cmd *cli.Command) error {
				p := &contivmodel.Policy{PolicyName: cmd.Args().First()}
				fill(cmd, kind, p, policyOptions(), nil)
				return create(ctx, cmd, kind, p, "Creating policy "+inTenant(cmd, p.PolicyName))
			}),
			leaf("rm", "delete a policy and its rules", name, []cli.Flag{tenantFlag()}, func(ctx context.Context, cmd *cli.Command) error {
				key := inTenant(cmd, cmd.Args().First())
				return remove(ctx, cmd, kind, key, "Deleting policy "+key)
			}),
			leaf("inspect", "show a policy and the endpoints that are subject to it", name, []cli.Flag{tenantFlag()},
				func(ctx context.Context, cmd *cli.Command) error {
					return inspect(ctx, cmd, kind, inTenant(cmd, cmd.Args().First()))
				}),
			leaf("ls", "list policies", noArguments(), []cli.Flag{tenantFlag(), allFlag(), jsonFlag(), quietFlag(), watchFlag()}, policyListing().list),
			hitsCommand(),
			leaf("rule-add", "add a rule to a policy", rule, append(fieldFlags(contivmodel.RuleKind(), ruleOptions()), previewFlag()), addRule),
			leaf("rule-rm", "delete a rule of a policy", rule, []cli.Flag{tenantFlag(), previewFlag()}, removeRule),
			leaf("rule-ls", "list the rules of a policy", name, []cli.Flag{tenantFlag(), jsonFlag(), quietFlag(), watchFlag()}, listRules),
		},
	}
}

func policyOptions() []option {
	return []option{
		tenantOption(),
		{field: "audit", name: "audit", usage: "have hosts write the connections that its rules decide to their audit files"},
		{field: "mode", name: "mode", usage: "`enforce or audit`: decide nothing, and log what would have been decided; none = enforce"},
	}
}

func policyListing() listing[contivmodel.Policy, contivmodel.PolicyOper] {
	return listing[contivmodel.Policy, contivmodel.PolicyOper]{
		kind:   contivmodel.PolicyKind(),
		tenant: func(p *contivmodel.Policy) string { return p.TenantName },
		name:   func(p *contivmodel.Policy) string { return p.PolicyName },
		table:  table{headers: []string{"Tenant", "Policy"}, dashes: []int{6, 6}},
		row:    func(p *contivmodel.Policy) []string { return []string{p.TenantName, p.PolicyName} },
	}
}
