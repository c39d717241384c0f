package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/contivmodel/client"
	"github.com/contiv/netplugin/utils/version"
)

func versionCommand() *cli.Command {
	return leaf("version", "print the versions of netctl and of the server", noArguments(), nil,
		func(ctx context.Context, cmd *cli.Command) error {
			if err := print(cmd, "Client Version:\n"+version.Block()); err != nil {
				return err
			}
			c, err := connect(cmd)
			if err != nil {
				return err
			}
			server, err := c.Version(ctx)
			var answer *client.Error
			switch {
			case errors.As(err, &answer):
				return refused(fmt.Errorf("%s: Status %d in request response", answer.Text, answer.Status))
			case err != nil:
				return &failure{status: exitServer, err: err}
			}
			return print(cmd, "\nServer Version:\n"+server.Block())
		})
}
