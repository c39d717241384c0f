package commands

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/state/clusterapi"
)

func endpointCommands() *cli.Command {
	id := arguments{names: "ENDPOINT", count: 1, missing: "Endpoint name required"}
	return &cli.Command{
		Name: "endpoint", Aliases: []string{"ep"}, Usage: "attachments of containers to networks",
		Commands: []*cli.Command{
			leaf("inspect", "find an endpoint by its id, its container's id or name, or a part of one", id, nil,
				func(ctx context.Context, cmd *cli.Command) error {
					c, err := connect(cmd)
					if err != nil {
						return err
					}
					v, err := c.InspectEndpoint(ctx, cmd.Args().First())
					if err != nil {
						return refused(err)
					}
					return printJSON(cmd, v)
				}),
			leaf("gc", "remove the endpoints of hosts that are down, without waiting for the grace period", noArguments(), []cli.Flag{
				&cli.StringFlag{Name: "host", Usage: "of this `host` only"},
				&cli.DurationFlag{Name: "older-than", Usage: "of hosts that have been down for `DURATION` at least", Value: clusterapi.DefaultOlder},
				&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be removed"},
				jsonFlag(),
			}, collectGarbage),
		},
	}
}

func collectGarbage(ctx context.Context, cmd *cli.Command) error {
	c, err := connect(cmd)
	if err != nil {
		return err
	}
	gone, err := c.Garbage(ctx, cmd.String("host"), cmd.Duration("older-than"), cmd.Bool("dry-run"))
	if err != nil {
		return refused(err)
	}
	if cmd.Bool("json") {
		return printJSON(cmd, gone)
	}
	verb := "removed"
	if cmd.Bool("dry-run") {
		verb = "would remove"
	}
	text := ""
	for _, h := range gone {
		for _, id := range h.Endpoints {
			text += fmt.Sprintf("%s endpoint %s of host %s, down since %s\n", verb, id, h.Host, h.Gone)
		}
		text += fmt.Sprintf("%s host %s\n", verb, h.Host)
	}
	return print(cmd, text)
}
