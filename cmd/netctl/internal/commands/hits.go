package commands

import (
	"cmp"
	"context"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/flowapi"
)

func hitsCommand() *cli.Command {
	flags := []cli.Flag{tenantFlag(), allFlag(), jsonFlag()}
	return leaf("hits", "list how often rules and NetworkPolicies have decided about a connection, on all hosts", noArguments(), flags, showHits)
}

func showHits(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	var tenants []string
	if !cmd.Bool("all") {
		tenants = []string{cmd.String("tenant")}
	}
	answer, err := c.Hits(ctx, tenants...)
	if err != nil {
		return refused(err)
	}
	return show(cmd, answer, hitsText(answer))
}

// hitsText shows hits to people.
func hitsText(a *flowapi.HitsAnswer) string {
	rows := make([][]string, len(a.Hits))
	for i, h := range a.Hits {
		last := "never hit"
		switch {
		case h.Count > 0:
			last = stampText(h.Last)
		case !a.Since.IsZero():
			last += " since " + stampText(a.Since)
		}
		verdict := string(h.Verdict)
		if h.Audit {
			verdict += " (audit)"
		}
		lastHour := uint64(0)
		for _, n := range h.Minutes {
			lastHour += uint64(n)
		}
		rows[i] = []string{printable(h.Tenant), printable(cmp.Or(strings.Trim(h.Policy+"/"+h.Rule, "/"), h.By)), verdict, thousands(int(h.Count)), thousands(int(lastHour)), last}
	}
	text := table{headers: []string{"Tenant", "Rule", "Verdict", "Hits", "Last hour", "Last hit"}, dashes: []int{6, 16, 8, 4, 9, 20}}.format(rows)
	for _, m := range a.Missing {
		text += missingText(m) + "\n"
	}
	return text
}
