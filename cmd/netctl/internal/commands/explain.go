package commands

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/flowapi"
)

func explainCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "name of the tenant, if an address is ambiguous"},
		&cli.StringFlag{Name: "proto", Usage: "`PROTOCOL`: icmp, tcp, udp or sctp (default: tcp with a port, else icmp)"},
		&cli.Uint16Flag{Name: "port", Aliases: []string{"p"}, Usage: "destination `PORT`, 1 to 65535"},
		&cli.IntFlag{Name: "family", Usage: "`4 or 6`, if the endpoints have both"},
		jsonFlag(),
	}
	return leaf("explain", "say whether A may open a connection to B, which rules say so, and where they are applied; no switch is asked",
		arguments{names: "A B", count: 2, missing: "Two endpoints required: the one that opens the connection, and an endpoint, service or address"}, flags, explain)
}

func explain(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	e, err := c.Explain(ctx, flowapi.Question{
		From: cmd.Args().Get(0), To: cmd.Args().Get(1), Tenant: cmd.String("tenant"), Proto: cmd.String("proto"), Port: cmd.Uint16("port"), Family: cmd.Int("family"),
	})
	if err != nil {
		return refused(err)
	}
	return show(cmd, e, explanationText(e))
}

// explanationText shows an explanation to people.
func explanationText(e *flowapi.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "From:     %s\n", placeOf(e.Src, ""))
	fmt.Fprintf(&b, "To:       %s\n", placeOf(e.Dst, e.Proto))
	if s := e.Service; s != nil {
		fmt.Fprintf(&b, "Service:  %s (%s port %d)\n", printable(s.Name), s.Address, s.Port)
	}
	fmt.Fprintf(&b, "Protocol: %s\nVerdict:  %s\n\n", printable(e.Proto), e.Verdict)
	rows := make([][]string, len(e.Decisions))
	for i, d := range e.Decisions {
		rows[i] = []string{printable(d.Host), d.At, printable(d.By), printable(strings.Trim(d.Policy+"/"+d.Rule, "/")), string(d.Verdict)}
	}
	b.WriteString(table{headers: []string{"Host", "At", "By", "Rule", "Verdict"}, dashes: []int{4, 11, 14, 16, 8}}.format(rows))
	b.WriteString("\n")
	if len(e.Providers) > 0 {
		b.WriteString(providersText(e.Providers) + "\n")
	}
	for _, a := range e.Applied {
		said := "has applied these rules"
		if !a.Done {
			said = "has not applied these rules: " + printable(a.Error)
		}
		fmt.Fprintf(&b, "host %s (%s) %s\n", printable(a.Host), a.At, said)
	}
	return b.String()
}

// providersText says of each provider of a service whether it may be reached.
func providersText(all []flowapi.Explanation) string {
	rows := make([][]string, len(all))
	for i, one := range all {
		by := ""
		if n := len(one.Decisions); n > 0 {
			by = ruleText(one.Decisions[n-1])
		}
		rows[i] = []string{endpointText(one.Dst, one.Proto), printable(one.Dst.Host), string(one.Verdict), by}
	}
	return table{headers: []string{"Provider", "Host", "Verdict", "Decided by"}, dashes: []int{24, 4, 8, 16}}.format(rows)
}

// placeOf is an end with its group and host.
func placeOf(e flowapi.End, proto string) string {
	if !e.Address.IsValid() {
		return "nobody: the service has no provider for the port"
	}
	text := endpointText(e, proto)
	if e.Endpoint == "" {
		return text + ", no endpoint"
	}
	return fmt.Sprintf("%s, group %s, network %s, host %s", text, printable(cmp.Or(e.Group, "none")), printable(e.Network), printable(cmp.Or(e.Host, "none")))
}
