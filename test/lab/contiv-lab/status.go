package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/test/lab"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show hosts, daemons and containers",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "as JSON"}},
		Action: action(nil, func(ctx context.Context, l *lab.Lab, c *cli.Command, _ []string) error {
			hosts, err := l.Status(ctx)
			if err != nil {
				return err
			}
			containers, err := l.Containers()
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(map[string]any{"config": l.Config(), "hosts": hosts, "containers": containers})
			}
			return printStatus(os.Stdout, hosts, containers)
		}),
	}
}

func printStatus(w io.Writer, hosts []lab.HostStatus, containers []lab.Container) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tCONTROL\tVTEP\tDAEMON\tPID\tSINCE\tSTARTS\tSTATE")
	for _, h := range hosts {
		if !h.Running {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t-\t-\t-\tnot running\n", h.Name, h.ControlIP, h.VTEPIP)
		}
		for _, d := range h.Daemons {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\n",
				h.Name, h.ControlIP, h.VTEPIP, d.Name, d.PID, d.Since.Format(time.TimeOnly), d.Starts, d.State)
		}
	}
	if len(containers) > 0 {
		fmt.Fprintln(t, "\nCONTAINER\tHOST\tTENANT\tNETWORK\tGROUP\tADDRESSES\tMAC")
	}
	for _, c := range containers {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Host, orDefault(c.Tenant, "default"), c.Network,
			orDefault(c.Group, "-"), orDefault(strings.Join(c.IPs, " "), "not attached"), orDefault(c.MAC, "-"))
	}
	return t.Flush()
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
