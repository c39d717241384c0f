package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/netmaster/ca"
)

// authorityCommand is for who has lost the key of the certificate authority.
func (o *options) authorityCommand() *cli.Command {
	return &cli.Command{
		Name: "ca", Usage: "certificate authority on this host's disk",
		Commands: []*cli.Command{{
			Name:  "new",
			Usage: "create a certificate authority in place of one whose key is lost; stop netmaster first. Hosts still believe this netmaster, and get the new authority from it",
			Action: func(_ context.Context, cmd *cli.Command) error {
				hash, err := ca.StartOver(o.secure.Dir)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.Root().Writer, "created certificate authority %s in %s; start netmaster now, and let other netmasters join it\n",
					hash, filepath.Clean(o.secure.Dir))
				return err
			},
		}},
	}
}
