package commands

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/state/flowapi"
)

func ruleOptions() []option {
	return []option{
		tenantOption(),
		{field: "priority", name: "priority", alias: "p", usage: "`NUMBER` of 1-100, higher wins"},
		{field: "direction", name: "direction", alias: "d", usage: "`in or out`, seen from the group", initial: contivmodel.DirectionIn},
		{field: "fromEndpointGroup", name: "from-group", alias: "g", usage: "`NAME` of the group that sends; in only"},
		{field: "toEndpointGroup", name: "to-group", alias: "e", usage: "`NAME` of the group that receives; out only"},
		{field: "fromNetwork", name: "from-network", alias: "n", usage: "`NAME` of the network that sends; in only"},
		{field: "toNetwork", name: "to-network", alias: "o", usage: "`NAME` of the network that receives; out only"},
		{field: "fromIpAddress", name: "from-ip-address", alias: "i", usage: "source, `ADDRESS[/LENGTH]`; in only"},
		{field: "toIpAddress", name: "to-ip-address", alias: "s", usage: "destination, `ADDRESS[/LENGTH]`"},
		{field: "protocol", name: "protocol", alias: "l", usage: "`tcp, udp, icmp or a number`; none = all"},
		{field: "port", name: "port", alias: "P", usage: "destination port, `NUMBER`; 0 = all"},
		{field: "action", name: "action", alias: "j", usage: "`allow, deny or reject`", initial: contivmodel.ActionAllow},
		{field: "mode", name: "mode", usage: "`enforce or audit`: decide nothing, and log what would have been decided; none = as the policy"},
	}
}

func addRule(ctx context.Context, cmd *cli.Command) error {
	kind := contivmodel.RuleKind()
	r := &contivmodel.Rule{PolicyName: cmd.Args().Get(0), RuleID: cmd.Args().Get(1)}
	fill(cmd, kind, r, ruleOptions(), nil)
	if err := checkDirection(r); err != nil {
		return err
	}
	if cmd.Bool("preview") {
		return previewPut(ctx, cmd, kind, r)
	}
	return create(ctx, cmd, kind, r, "")
}

func removeRule(ctx context.Context, cmd *cli.Command) error {
	kind, key := contivmodel.RuleKind(), inTenant(cmd, cmd.Args().First()+":"+cmd.Args().Get(1))
	if !cmd.Bool("preview") {
		return remove(ctx, cmd, kind, key, "")
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	change := flowapi.Change{Verb: "delete", Kind: kind.Collection, Key: key}
	return previewChanges(ctx, cmd, c, flowapi.PreviewRequest{Changes: []flowapi.Change{change}})
}

// checkDirection refuses options that do not go with the rule's direction.
func checkDirection(r *contivmodel.Rule) error {
	problem := ""
	switch {
	case r.Direction == contivmodel.DirectionIn && r.ToEndpointGroup != "":
		problem = "Cant specify to-group for incoming rule"
	case r.Direction == contivmodel.DirectionIn && r.ToNetwork != "":
		problem = "Cant specify to-network for incoming rule"
	case r.Direction == contivmodel.DirectionIn && r.FromEndpointGroup != "" && r.FromNetwork != "":
		problem = "Cant specify both from-group and from-network"
	case r.Direction == contivmodel.DirectionOut && r.FromEndpointGroup != "":
		problem = "Cant specify from-group for outgoing rule"
	case r.Direction == contivmodel.DirectionOut && r.FromNetwork != "":
		problem = "Cant specify from-network for outgoing rule"
	case r.Direction == contivmodel.DirectionOut && r.FromIPAddress != "":
		problem = "Cant specify from-ip-address for outgoing rule"
	case r.Direction == contivmodel.DirectionOut && r.ToEndpointGroup != "" && r.ToNetwork != "":
		problem = "Cant specify both to-group and to-network"
	case r.Direction != contivmodel.DirectionIn && r.Direction != contivmodel.DirectionOut:
		problem = fmt.Sprintf("Unknown direction %q: expected in or out", r.Direction)
	default:
		return nil
	}
	return &failure{status: exitUsage, err: fmt.Errorf("%s", problem)}
}

// listRules prints the rules of a policy, which must exist, by priority, then id.
func listRules(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	if _, err := client.Get(ctx, c, contivmodel.TenantKind(), cmd.String("tenant")); err != nil {
		return refused(err)
	}
	if _, err := client.Get(ctx, c, contivmodel.PolicyKind(), inTenant(cmd, cmd.Args().First())); err != nil {
		return refused(err)
	}
	return ruleListing().only(ctx, cmd, c, func(r *contivmodel.Rule) bool {
		return r.TenantName == cmd.String("tenant") && r.PolicyName == cmd.Args().First()
	})
}

func ruleListing() listing[contivmodel.Rule, contivmodel.NoOper] {
	return listing[contivmodel.Rule, contivmodel.NoOper]{
		kind:  contivmodel.RuleKind(),
		name:  func(r *contivmodel.Rule) string { return r.RuleID },
		row:   ruleWords,
		order: func(a, b *contivmodel.Rule) int { return cmp.Compare(a.Priority, b.Priority) },
		text:  ruleTables,
	}
}

// ruleWords says a rule in the words of rule-add, without what does not matter.
func ruleWords(r *contivmodel.Rule) []string {
	words := []string{r.RuleID, "direction=" + r.Direction, "priority=" + strconv.Itoa(r.Priority), "action=" + r.Action}
	for _, w := range [][2]string{
		{"from-group", r.FromEndpointGroup},
		{"from-network", r.FromNetwork},
		{"from-ip-address", r.FromIPAddress},
		{"to-group", r.ToEndpointGroup},
		{"to-network", r.ToNetwork},
		{"to-ip-address", r.ToIPAddress},
		{"protocol", r.Protocol},
	} {
		if w[1] != "" {
			words = append(words, w[0]+"="+w[1])
		}
	}
	if r.Port != 0 {
		words = append(words, "port="+strconv.Itoa(r.Port))
	}
	return words
}

func incoming(r *contivmodel.Rule) bool { return r.Direction == contivmodel.DirectionIn }

// ruleRow is a rule's row in the table of its direction.
func ruleRow(r *contivmodel.Rule) []string {
	priority, port := strconv.Itoa(r.Priority), strconv.Itoa(r.Port)
	if incoming(r) {
		return []string{r.RuleID, priority, r.FromEndpointGroup, r.FromNetwork, r.FromIPAddress, r.ToIPAddress, r.Protocol, port, r.Action}
	}
	return []string{r.RuleID, priority, r.ToEndpointGroup, r.ToNetwork, r.ToIPAddress, r.Protocol, port, r.Action}
}

// ruleTables lays out incoming and outgoing rules, always both.
func ruleTables(rules []*contivmodel.Rule) string {
	in := table{
		headers: []string{
			"Rule", "Priority", "From EndpointGroup", "From Network", "From IpAddress", "To IpAddress", "Protocol", "Port", "Action",
		},
		dashes: []int{4, 8, 18, 12, 9, 12, 8, 4, 6},
	}
	out := table{
		headers: []string{"Rule", "Priority", "To EndpointGroup", "To Network", "To IpAddress", "Protocol", "Port", "Action"},
		dashes:  []int{4, 8, 16, 10, 9, 8, 4, 6},
	}
	var ins, outs [][]string
	for _, r := range rules {
		if incoming(r) {
			ins = append(ins, ruleRow(r))
		} else {
			outs = append(outs, ruleRow(r))
		}
	}
	return "Incoming Rules:\n" + in.format(ins) + "Outgoing Rules:\n" + out.format(outs)
}
