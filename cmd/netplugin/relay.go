package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/mgmtfn/dockplugin"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/relay"
	"github.com/contiv/netplugin/utils/cliconf"
)

// relayCommand keeps the Docker Engine served while the agent is down. Its variables are
// the agent's, so that one file has the settings of both.
func relayCommand() *cli.Command {
	var (
		log                        cliconf.Log
		socket, agent, scope, mode string
	)
	return &cli.Command{
		Name: "docker-relay", Usage: "relay between the Docker Engine and the agent, so that the Engine starts without delay while the agent is down",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "socket", Value: dockplugin.DefaultSocket, Destination: &socket,
				Usage: "`path` of the socket the Docker Engine calls",
			},
			&cli.StringFlag{
				Name: "agent-socket", Value: relay.DefaultSocket, Destination: &agent, Sources: env.Var("DOCKER_PLUGIN_SOCKET"),
				Usage: "`path` of the agent's socket: its --docker-plugin-socket",
			},
			&cli.StringFlag{
				Name: "docknet-scope", Value: dockplugin.ScopeLocal, Destination: &scope, Sources: env.Var("DOCKNET_SCOPE"),
				Usage: "the agent's",
			},
			&cli.StringFlag{Name: "mode", Value: "docker", Destination: &mode, Sources: env.Var("MODE"), Usage: "the agent's"},
		}, log.Flags(env)...),
		Action: func(ctx context.Context, _ *cli.Command) error {
			logger, err := log.Open("docker-relay", os.Stderr)
			if err != nil {
				return err
			}
			if socket == agent {
				return cliconf.Usagef("--socket %s is the socket of the agent: start the agent with --docker-plugin-socket %s", socket, relay.DefaultSocket)
			}
			if err := cliconf.OneOf("--docknet-scope", &scope, dockplugin.ScopeLocal, dockplugin.ScopeGlobal); err != nil {
				return err
			}
			logger.WithField("agent", agent).Info("relay to the agent started")
			r := relay.New(relay.Config{
				Agent: agent, Capabilities: dockplugin.Capabilities(scope, mode == "swarm-mode"), Log: logger,
			})
			g, gctx := errgroup.WithContext(ctx)
			g.Go(func() error { return r.Run(gctx) })
			g.Go(func() error { return dockplugin.Serve(gctx, socket, r) })
			if err := g.Wait(); ctx.Err() == nil {
				return err
			}
			return nil
		},
	}
}
