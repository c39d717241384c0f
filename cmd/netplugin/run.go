package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/netplugin/infra"
	"github.com/contiv/netplugin/netplugin/inspect"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/footprint"
	"github.com/contiv/netplugin/utils/pki"
	"github.com/contiv/netplugin/utils/redact"
	"github.com/contiv/netplugin/utils/version"
)

// run wires the daemon and works until ctx ends. What is on the host stays.
func run(ctx context.Context, o *options, log *logrus.Logger) error {
	// The agent's memory is one map of flows and small garbage: collect it early.
	debug.SetGCPercent(30)
	member, err := o.secure.join(ctx, o.host, o.restAddress, log)
	if ctx.Err() != nil {
		return nil // told to stop while it waited
	}
	if err != nil {
		return err
	}
	d, err := newDaemon(o, member, log)
	if err != nil {
		return err
	}
	defer d.store.Close()
	checks := d.checks(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return ended(ctx, member.run(ctx)) })
	d.runCore(ctx, g)
	d.runCluster(ctx, g, checks)
	d.runInspect(ctx, g, checks)
	if err := d.runRuntimes(ctx, g, checks); err != nil {
		g.Go(func() error { return err }) // which ends the others
	}
	log.WithFields(logrus.Fields{"host": o.host, "vtep": o.vtepIP, "ctrl": o.ctrlIP, "mode": o.network.Mode}).Info("netplugin started")
	err = g.Wait()
	log.Info("netplugin stopped; containers, ports and flows stay")
	return err
}

// runCore runs the way from the store to the switch.
func (d *daemon) runCore(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return d.driver.Run(ctx) })
	if d.names != nil {
		g.Go(func() error { return d.names.Run(ctx) })
	}
	if d.flows != nil {
		g.Go(func() error { return ended(ctx, d.flows.Run(ctx, d.driver)) })
		for _, e := range d.export {
			g.Go(func() error { return ended(ctx, e.Run(ctx, d.flows)) })
		}
	}
	g.Go(func() error { return d.agent.Run(ctx) })
	g.Go(func() error { return followAddresses(ctx, d.agent, d.log) })
	g.Go(func() error {
		d.reach.learn(ctx, d.store, d.driver)
		return nil
	})
	g.Go(func() error {
		shrink(ctx, d.agent, d.log)
		return nil
	})
}

// runCluster runs what connects this host with the others: the leader, the host's own
// registration and reports, requests of netmaster.
func (d *daemon) runCluster(ctx context.Context, g *errgroup.Group, checks map[string]func() error) {
	// A report is made at every change; the store is not asked as often.
	seldom := maps.Clone(checks)
	seldom["store"] = remembered(checks["store"], 5*time.Second)
	me := cluster.Host{Label: d.o.host, CtrlIP: d.o.ctrlIP, VTEP: d.o.vtepIP, VXLANPort: d.o.vxlanPort}
	reporter := cluster.NewReporter(cluster.ReporterConfig{
		Host: me, Version: version.Get().Version, Instance: time.Now().UnixNano(), Agent: d.agent, Driver: d.driver,
		Health: func() []string { return complaints(seldom) }, Store: d.store, Dial: d.dial(), Log: d.log.WithField("part", "report"),
	})
	rpc := cluster.Handler(cluster.Answers{
		Status:   reporter.Report,
		Announce: func(_ context.Context, group int) (int, error) { return d.driver.Announce(uint32(group)), nil },
	})
	g.Go(func() error { return ended(ctx, d.master.Follow(ctx, d.store)) })
	g.Go(func() error {
		return ended(ctx, infra.Keep(ctx, d.o.host, d.agent, d.master, d.log.WithField("part", "infra")))
	})
	g.Go(func() error { return ended(ctx, cluster.Register(ctx, d.master, me, d.log)) })
	g.Go(func() error { return ended(ctx, reporter.Run(ctx)) })
	for _, port := range []uint16{clusterapi.AgentVXLANPort, clusterapi.AgentVLANPort} {
		address := netip.AddrPortFrom(d.o.ctrlIP, port).String()
		g.Go(func() error {
			return inspect.Serve(ctx, address, d.secured(pki.CertificateRequired, pki.UnitMaster), rpc)
		})
	}
}

// runInspect serves the state of the agent, its health and its metrics.
func (d *daemon) runInspect(ctx context.Context, g *errgroup.Group, checks map[string]func() error) {
	sources := inspect.Sources{
		Driver: d.driver.Inspect, Agent: func() any { return d.agent.Status() },
		Reclaim: inspect.Reclaim(d.driver), Services: d.driver.ServiceCounts, Rules: d.driver.RuleHits, Trace: d.driver.Trace,
		Checks: checks, Notes: d.notes, Metrics: d.metrics(),
		BGP:  func(ctx context.Context) (any, error) { return d.driver.InspectBGP(ctx) },
		Host: d.o.host, Examine: d.driver.Examine, Probe: d.driver.Probe, Certificate: func() *doctorapi.Certificate { return doctorapi.CertificateOf(d.creds) },
		Support: map[string]func(context.Context, io.Writer) error{
			doctorapi.FileFlows: d.driver.WriteFlows, doctorapi.FileOVSDB: d.driver.WriteDatabase, doctorapi.FileFlags: writeFlags,
			doctorapi.FileLog: func(_ context.Context, w io.Writer) error { return d.o.log.Tail.Write(w) },
		},
	}
	if d.names != nil {
		sources.Names = d.names.Inspect
	}
	if d.flows != nil {
		sources.Flows = d.flows
	}
	if d.kube != nil && d.kube.policies != nil {
		sources.Policies = d.kube.policies
	}
	if d.kube != nil && d.kube.services != nil {
		sources.Kubernetes = d.kube.services
	}
	g.Go(func() error {
		return inspect.Serve(ctx, d.o.restAddress, d.secured(pki.CertificateOptional), d.guarded(inspect.Handler(sources)))
	})
}

// runRuntimes serves the container runtimes of the mode.
func (d *daemon) runRuntimes(ctx context.Context, g *errgroup.Group, checks map[string]func() error) error {
	if d.kube != nil {
		g.Go(func() error { return d.kube.Run(ctx) })
		g.Go(func() error { return ended(ctx, d.kube.confirmNode(ctx, d.agent)) })
	}
	if d.o.runsCNI() || d.o.runsMesos() {
		d.runAttacher(ctx, g)
	}
	if d.o.runsCNI() {
		g.Go(func() error { return d.o.setUpNode(ctx, checks, d.log) })
		return nil
	}
	docker, err := dockerServer(d.o, d.store, d.master, d.agent, d.driver, d.log)
	if err != nil {
		return err
	}
	g.Go(func() error { return docker.Run(ctx, d.o.docker.pluginSocket) })
	return nil
}

// runAttacher serves CNI runtimes.
func (d *daemon) runAttacher(ctx context.Context, g *errgroup.Group) {
	attacher := attachment.New(attachment.Config{
		HostLabel: d.o.host, Master: d.master, Agent: d.agent, Ports: d.driver, PodNetworks: d.kube.podNetworks(), Pods: d.kube.living(), EndpointPolicies: d.kube.endpointPolicies(),
		Notes: cni.NotesDir(d.o.cniSocket), Patience: deletePatience, Log: d.log.WithField("part", "cni"),
	})
	g.Go(func() error { return ended(ctx, attacher.Run(ctx)) })
	if d.o.runsCNI() {
		g.Go(func() error { return k8splugin.NewServer(attacher).Run(ctx, d.o.cniSocket) })
	}
	if d.o.runsMesos() {
		g.Go(func() error { return d.o.serveMesos(ctx, attacher, d.agent, d.log) })
	}
}

// deletePatience is longer than a switch takes to restart, and shorter than a runtime waits
// for a container to be detached.
const deletePatience = 10 * time.Second

// quiet is how long nothing must have changed before memory is given back.
const quiet = 3 * time.Second

// shrink gives memory back that only the start needed, or a burst of changes, each time
// one is over.
func shrink(ctx context.Context, ag *agent.Agent, log logrus.FieldLogger) {
	for {
		_, _, changed := ag.Progress()
		over := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			over.Stop()
			return
		case <-changed:
			over.Stop()
			continue
		case <-over.C:
		}
		if _, err := footprint.Shrink(); err != nil {
			log.WithError(err).Warn("cannot return unused memory to the system")
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// writeFlags writes the command line without secrets.
func writeFlags(_ context.Context, w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(redact.Flags(os.Args), "\n"))
	return err
}

// ended hides the error of a loop that ends because the program does.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
