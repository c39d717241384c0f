package main

import (
	"context"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v3"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin"
	"github.com/contiv/netplugin/mgmtfn/mesosplugin/mesosapi"
	"github.com/contiv/netplugin/netplugin/agent"
)

// mesosOptions say whether and where Mesos is served.
type mesosOptions struct {
	serve  bool
	socket string
}

func (o *mesosOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{
			Name: "mesos", Destination: &o.serve, Sources: env.Var("MESOS"),
			Usage: "serve the containerizer of Apache Mesos, in any mode (always on in mode test)",
		},
		&cli.StringFlag{
			Name: "mesos-socket", Value: mesosapi.DefaultSocket, Destination: &o.socket, Sources: env.Var("MESOS_SOCKET"),
			Usage: "`path` of the socket for netcontiv",
		},
	}
}

// runsMesos reports whether Mesos is served.
func (o *options) runsMesos() bool { return o.mesos.serve || o.network.Mode == "test" }

// serveMesos serves Mesos until ctx ends.
func (o *options) serveMesos(ctx context.Context, at *attachment.Attacher, ag *agent.Agent, log *logrus.Logger) error {
	return mesosplugin.New(mesosplugin.Config{Attacher: at, Agent: ag, Log: log.WithField("part", "mesos")}).Run(ctx, o.mesos.socket)
}
