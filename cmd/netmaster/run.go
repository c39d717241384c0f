package main

import (
	"context"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/daemon"
	"github.com/contiv/netplugin/netmaster/ui"
	"github.com/contiv/netplugin/utils/cliconf"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/tlsport"
	"github.com/contiv/netplugin/utils/version"
)

// docker says how the cluster has docker networks.
func (o *options) docker() (daemon.Docker, error) {
	d := daemon.Docker{Driver: o.name}
	if o.docknetScope == "global" {
		engine, err := dockerd.New(o.dockerSocket)
		if err != nil {
			return d, err
		}
		d.Shared = engine
	}
	return d, nil
}

// listen opens all listeners, or none.
func (o *options) listen() (listeners []net.Listener, rpc net.Listener, err error) {
	listeners, err = daemon.Listen(o.external, o.internal)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		for _, l := range listeners {
			l.Close()
		}
	}()
	if o.secure.Mode.TLS() && o.secure.authListen != "" {
		l, err := net.Listen("tcp", o.secure.authListen)
		if err != nil {
			return nil, nil, errs.New(errs.Unavailable, "listen on %s: %w", o.secure.authListen, err)
		}
		listeners = append(listeners, l)
	}
	rpc, err = net.Listen("tcp", o.rpc)
	if err != nil {
		return nil, nil, errs.New(errs.Unavailable, "listen on %s for reports of agents: %w", o.rpc, err)
	}
	return listeners, rpc, nil
}

// run is a netmaster from its first listener to its last.
func run(ctx context.Context, o *options, log *logrus.Logger) error {
	first, err := o.first.network(o.network.NetMode)
	if err != nil {
		return err
	}
	docker, err := o.docker()
	if err != nil {
		return err
	}
	nodes, err := o.nodes(log)
	if err != nil {
		return err
	}
	if err := o.kubernetes(log); err != nil {
		return err
	}
	o.secure.members = o.store.Kind == cliconf.StoreEmbedded && o.member.cfg.InitialCluster != ""
	sec, err := newSecurity(ctx, &o.secure, o.internal, log)
	if err != nil {
		return err
	}
	listeners, rpc, err := o.listen()
	if err != nil {
		return err
	}
	secured, err := sec.config(o.network.Mode)
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(o.internal)
	members := cluster.New(host)
	build := version.Get()
	log.WithFields(logrus.Fields{
		"version": build.Version, "commit": build.GitCommit, "address": o.internal, "store": o.store.Kind, "tls": string(o.secure.Mode),
	}).Info("netmaster starts")
	controller := daemon.LeaderConfig{
		Log: log, ClusterMode: o.network.Mode, FwdMode: o.network.FwdMode, Infra: o.infra, ACIGateway: o.aciGateway, Members: members, Grace: o.grace,
		Docker: docker, DefaultNetwork: first, AgentDial: sec.dialer().DialContext,
		Own: o.own(sec.creds), LastLines: o.log.Tail.Write,
	}
	if o.secure.Mode.TLS() {
		controller.Secrets, controller.OpenState = sec.sealer("bgp"), o.secure.Mode != tlsport.Require
	}
	if nodes != nil {
		controller.Nodes = nodes
	}
	metrics := prometheus.NewRegistry()
	if sec.audit != nil {
		if err := metrics.Register(sec.audit); err != nil {
			return err
		}
	}
	page, err := ui.New()
	if err != nil {
		return err
	}
	d, err := daemon.New(daemon.Config{
		Metrics:       metrics,
		Listeners:     listeners,
		Address:       o.internal,
		OpenStore:     o.opener(sec, log),
		WithStore:     sec.withStore,
		Security:      secured,
		Page:          page,
		NewController: daemon.NewLeader(controller),
		RPC:           rpc,
		Members:       members,
		Lease:         o.lease,
		Log:           log,
		Version:       build,
	})
	if err != nil {
		return err
	}
	sec.daemon.Store(d)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.Run(gctx) })
	g.Go(func() error { return sec.run(gctx) })
	g.Go(func() error {
		ticks := time.NewTicker(lookEvery)
		defer ticks.Stop()
		saveMemory(gctx, ticks.C, log)
		return nil
	})
	if nodes != nil {
		g.Go(func() error {
			nodes.Run(gctx)
			return nil
		})
	}
	err = g.Wait()
	if errs.Is(err, errs.Invalid) {
		return &cliconf.UsageError{Err: err} // options that only their use shows to be wrong
	}
	if err == nil {
		log.Info("netmaster stopped")
	}
	return err
}
