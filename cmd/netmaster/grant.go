package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/objdb/open"
	"github.com/contiv/netplugin/state/rights"
	"github.com/contiv/netplugin/utils/cliconf"
)

const (
	agentRole   = "contiv-agent" // role and user in etcd, ACL policy in Consul
	grantWithin = 30 * time.Second
)

// granter is a store outside of netmaster that can be told what agents read.
type granter interface {
	GrantRead(ctx context.Context, name string, prefixes []string, dry bool, say func(string)) error
}

// storeCommand prepares a store of the user's own.
func (o *options) storeCommand() *cli.Command {
	return &cli.Command{
		Name: "store", Usage: "prepare an external store",
		Commands: []*cli.Command{{
			Name:  "grant",
			Usage: "create in etcd the role and user, or in Consul the ACL policy, by which agents read the store; needs the rights of root",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be done"}},
			Action: func(ctx context.Context, cmd *cli.Command) error {
				return o.grant(ctx, cmd.Bool("dry-run"), func(what string) { fmt.Fprintln(cmd.Root().Writer, what) })
			},
		}},
	}
}

func (o *options) grant(ctx context.Context, dry bool, say func(string)) error {
	if err := o.store.Validate(); err != nil {
		return err
	}
	if o.store.Kind == cliconf.StoreEmbedded {
		return cliconf.Usagef("--store embedded needs no grant: it lets agents read by their certificates")
	}
	store, err := open.Store(o.store)
	if err != nil {
		return err
	}
	defer store.Close()
	g, ok := store.(granter)
	if !ok {
		return cliconf.Usagef("--store %s: rights cannot be granted", o.store.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, grantWithin)
	defer cancel()
	changes := 0
	err = g.GrantRead(ctx, agentRole, rights.AgentReads(), dry, func(what string) {
		changes++
		say(what)
	})
	if err == nil && changes == 0 {
		say("nothing to do: agents may read what they need, and nothing else")
	}
	return err
}
