package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/mgmtfn/dockplugin"
	"github.com/contiv/netplugin/mgmtfn/dockplugin/relay"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
)

// docker is the options of modes docker and swarm-mode.
type docker struct {
	pluginSocket, engineSocket, name, scope string
}

func (d *docker) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "docker-plugin-socket", Value: dockplugin.DefaultSocket, Destination: &d.pluginSocket, Sources: env.Var("DOCKER_PLUGIN_SOCKET"),
			Usage: "`path` of the plugin socket for the Docker Engine (mode docker and swarm-mode)",
		},
		&cli.StringFlag{
			Name: "docker-socket", Value: dockerd.DefaultSocket, Destination: &d.engineSocket, Sources: env.Var("DOCKER_SOCKET"),
			Usage: "`path` of the Docker Engine's own socket (mode docker and swarm-mode)",
		},
		&cli.StringFlag{
			Name: "plugin-name", Value: "netplugin", Destination: &d.name, Sources: env.Var("PLUGIN_NAME"),
			Usage: "`name` of this plugin in the Docker Engine; auto: the name under which a managed plugin was installed (mode docker and swarm-mode)",
		},
		&cli.StringFlag{
			Name: "docknet-scope", Value: dockplugin.ScopeLocal, Destination: &d.scope, Sources: env.Var("DOCKNET_SCOPE"),
			Usage: "local: this agent creates the docker networks of its Engine; global: netmaster creates them, and Engines up to 20.10 share them through their cluster store (mode docker)",
		},
	}
}

func (d *docker) validate() error {
	for flag, path := range map[string]string{"--docker-plugin-socket": d.pluginSocket, "--docker-socket": d.engineSocket} {
		if !filepath.IsAbs(path) {
			return cliconf.Usagef("%s %q: expected an absolute path", flag, path)
		}
	}
	if d.name == "" {
		return cliconf.Usagef("--plugin-name is empty, expected the name of a docker driver")
	}
	return cliconf.OneOf("--docknet-scope", &d.scope, dockplugin.ScopeLocal, dockplugin.ScopeGlobal)
}

// dockerServer makes what serves the Docker Engine.
func dockerServer(o *options, store objdb.Store, master *cluster.Master, ag *agent.Agent, ports dockplugin.Ports, log *logrus.Logger) (*dockplugin.Server, error) {
	engine, err := dockerd.New(o.docker.engineSocket)
	if err != nil {
		return nil, err
	}
	name, id := o.docker.name, ""
	if name == dockplugin.ManagedName {
		if id, err = dockplugin.ManagedID(); err != nil {
			return nil, fmt.Errorf("--plugin-name %s: %w", name, err)
		}
		name = ""
	}
	return dockplugin.NewServer(dockplugin.Config{
		HostLabel: o.host, Driver: name, PluginID: id, Scope: o.docker.scope, Swarm: o.network.Mode == "swarm-mode",
		Store: store, Master: master, Agent: ag, Ports: ports, Engine: engine, Log: log.WithField("part", "docker"),
	}), nil
}

// cleanup removes the docker networks netplugin has made, if there is an Engine. An Engine
// removes none whose driver it cannot ask: where no relay answers, this does.
func (d *docker) cleanup(ctx context.Context, dryRun bool, say func(string)) error {
	if _, err := os.Stat(d.engineSocket); err != nil {
		return nil // no Engine has run here
	}
	engine, err := dockerd.New(d.engineSocket)
	if err != nil {
		return err
	}
	defer engine.Close()
	remove := func(ctx context.Context) error {
		err := dockplugin.RemoveNetworks(ctx, engine, d.name, dryRun, say)
		if errs.Is(err, errs.Unavailable) {
			say("no docker network: " + err.Error())
			return nil
		}
		return err
	}
	if c, err := net.Dial("unix", d.pluginSocket); err == nil {
		c.Close()
		return remove(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		nobody := relay.Config{Agent: "/nonexistent", Patience: time.Millisecond, Capabilities: dockplugin.Capabilities(d.scope, false), Log: silent}
		return ended(gctx, dockplugin.Serve(gctx, d.pluginSocket, relay.New(nobody)))
	})
	g.Go(func() error {
		defer stop()
		return remove(gctx)
	})
	return g.Wait()
}
