package commands

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/traceapi"
)

func traceCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "`ENDPOINT` that sends: (part of) its id, its container's id or name, or its address"},
		&cli.StringFlag{Name: "to", Usage: "destination `ENDPOINT`: the same, or the name of a service, or any address"},
		&cli.StringFlag{Name: "tenant", Aliases: []string{"t"}, Usage: "name of the tenant, if an address is ambiguous"},
		&cli.StringFlag{Name: "proto", Usage: "`PROTOCOL`: icmp, tcp, udp or sctp (default: tcp with a port, else icmp)"},
		&cli.Uint16Flag{Name: "port", Aliases: []string{"p"}, Usage: "destination `PORT`, 1 to 65535"},
		&cli.BoolFlag{Name: "ipv6", Usage: "use IPv6 if the endpoints have both families"},
		&cli.BoolFlag{Name: "verbose", Usage: "show every flow that the packet matches"},
		&cli.BoolFlag{Name: "json", Aliases: []string{"j"}, Usage: "print as JSON, with every flow"},
	}
	return leaf("trace", "trace a packet host by host, with the rule or table that decides; nothing is sent", noArguments(), flags, tracePacket)
}

func tracePacket(ctx context.Context, cmd *cli.Command) error {
	q := traceapi.Query{
		From: cmd.String("from"), To: cmd.String("to"), Tenant: cmd.String("tenant"), Proto: cmd.String("proto"), Port: cmd.Uint16("port"),
	}
	if q.From == "" || q.To == "" {
		return misuse("--from and --to are needed")
	}
	if cmd.Bool("ipv6") {
		q.Family = 6
	}
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	t, err := c.Trace(ctx, q)
	if err != nil {
		return refused(err)
	}
	return show(cmd, t, traceText(t, cmd.Bool("verbose")))
}

// traceText shows a trace to people.
func traceText(t *traceapi.Trace, verbose bool) string {
	var b strings.Builder
	p := t.Packet
	kind := p.Proto
	if p.DstPort != 0 {
		kind += fmt.Sprintf(" port %d", p.DstPort)
	}
	fmt.Fprintf(&b, "%s from %s to %s\n", kind, placeText(t.From), placeText(t.To))
	writeHops(&b, t.Request, verbose)
	if len(t.Reply) > 0 {
		b.WriteString("\nthe answer\n")
		writeHops(&b, t.Reply, verbose)
	}
	b.WriteString("\n" + t.Verdict + "\n")
	return b.String()
}

func placeText(p traceapi.Place) string {
	switch {
	case p.Host != "":
		return fmt.Sprintf("%s (%v, host %s)", p.Name, p.Address, p.Host)
	case p.Name == p.Address.String():
		return p.Name
	}
	return fmt.Sprintf("%s (%v)", p.Name, p.Address)
}

// writeHops shows the way over hosts: the tables that have something to say, or all.
func writeHops(b *strings.Builder, hops []traceapi.Hop, verbose bool) {
	for _, h := range hops {
		fmt.Fprintf(b, "\nhost %s, %s, from %s\n", h.Host, h.Mode, h.From)
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		for _, s := range h.Steps {
			switch {
			case verbose:
				fmt.Fprintf(w, "  %s\t%s\n  \t%s\n", s.Table, s.Words, strings.TrimPrefix(s.Match+" -> "+strings.Join(s.Actions, ", "), " -> "))
			case s.Words != "":
				fmt.Fprintf(w, "  %s\t%s\n", s.Table, s.Words)
			}
		}
		_ = w.Flush() // to memory
		for _, e := range h.Ends {
			fmt.Fprintf(b, "  => %s\n", endText(e))
		}
	}
}

func endText(e traceapi.End) string {
	if e.Kind == traceapi.Dropped {
		return "dropped: " + e.Words
	}
	return e.Words
}
