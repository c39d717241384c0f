package commands

import (
	"context"

	"github.com/urfave/cli/v3"
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
		},
	}
}
