package main

import (
	"context"
	"maps"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/mgmtfn/attachment"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/k8splugin"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/netplugin/infra"
	"github.com/contiv/netplugin/netplugin/inspect"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/open"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/footprint"
	"github.com/contiv/netplugin/utils/version"
)

// run wires the daemon and works until ctx ends. What is on the host stays.
func run(ctx context.Context, o *options, log *logrus.Logger) error {
	// The agent's memory is one map of flows and small garbage: collect it early.
	debug.SetGCPercent(30)
	store, err := open.Store(o.store)
	if err != nil {
		return err
	}
	defer store.Close()
	names, err := o.names.server(o.network.Mode, log.WithField("part", "dns"))
	if err != nil {
		return err
	}
	apiServer, err := o.apiServer()
	if err != nil {
		return err
	}
	reach, err := o.containerReach(apiServer)
	if err != nil {
		return err
	}
	ovs := ovsd.Config{
		ControlPorts: reach.closed, TunnelPorts: reach.tunnels, Sources: o.sources(apiServer),
		HostLabel: o.host, OVSDB: o.ovsdb, Datapath: o.datapath, VTEP: o.vtepIP, CtrlIP: o.ctrlIP, VXLANPort: uint16(o.vxlanPort),
		ConnectionRate: uint32(o.connectionRate), ConnectionLimit: uint32(o.connectionLimit),
		Uplinks: o.uplinks, Takeover: o.takeover, AllowSpoofing: o.allowSpoofing, EndpointPolicies: o.guards(), Log: log.WithField("part", "ovs"),
	}
	if names != nil {
		ovs.NameServer, ovs.DNSRate = names, uint32(o.names.rate)
	}
	driver, err := ovsd.New(ovs)
	if err != nil {
		return err
	}
	kube, err := o.kubernetes(driver, log)
	if err != nil {
		return err
	}
	ag := agent.New(agent.Config{
		HostLabel: o.host, VTEP: o.vtepIP, CtrlIP: o.ctrlIP, FwdMode: o.network.FwdMode, MTU: ovsd.TunnelMTU(o.vtepIP),
		Store: store, Driver: driver, Log: log.WithField("part", "agent"),
		OnBatch: func(b objdb.Batch) {
			if names != nil {
				names.Apply(b)
			}
			kube.Apply(b)
		},
		Addresses: localAddresses, OnHosts: hostsTo(driver, o.host),
	})
	master := cluster.NewMaster()

	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics.MustRegister(driver.Collector(), ag.Collector())
	var inspectNames func() any
	if names != nil {
		metrics.MustRegister(names.Collectors()...)
		inspectNames = names.Inspect
	}
	checks := map[string]func() error{
		"store": func() error {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return store.Health(soon)
		},
		"agent":  ag.Ready,
		"switch": driver.Ready,
		"host":   driver.HostReady,
		"netmaster": func() error {
			if master.Leader() == "" {
				return errs.New(errs.Unavailable, "no netmaster is the leader; is one running?")
			}
			return nil
		},
	}

	kube.check(checks)

	// A report is made at every change; the store is not asked as often.
	seldom := maps.Clone(checks)
	seldom["store"] = remembered(checks["store"], 5*time.Second)
	me := cluster.Host{Label: o.host, CtrlIP: o.ctrlIP, VTEP: o.vtepIP, VXLANPort: o.vxlanPort}
	reporter := cluster.NewReporter(cluster.ReporterConfig{
		Host: me, Version: version.Get().Version, Instance: time.Now().UnixNano(), Agent: ag, Driver: driver,
		Health: func() []string { return complaints(seldom) }, Store: store, Log: log.WithField("part", "report"),
	})
	rpc := cluster.Handler(cluster.Answers{
		Status:   reporter.Report,
		Announce: func(_ context.Context, group int) (int, error) { return driver.Announce(uint32(group)), nil },
	})

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return driver.Run(ctx) })
	if names != nil {
		g.Go(func() error { return names.Run(ctx) })
	}
	g.Go(func() error { return ag.Run(ctx) })
	g.Go(func() error { return followAddresses(ctx, ag, log) })
	g.Go(func() error {
		reach.learn(ctx, store, driver)
		return nil
	})
	g.Go(func() error {
		shrink(ctx, ag, log)
		return nil
	})
	g.Go(func() error { return ended(ctx, master.Follow(ctx, store)) })
	g.Go(func() error {
		return ended(ctx, infra.Keep(ctx, o.host, ag, master, log.WithField("part", "infra")))
	})
	g.Go(func() error {
		return ended(ctx, cluster.Register(ctx, store, me, log))
	})
	g.Go(func() error { return ended(ctx, reporter.Run(ctx)) })
	for _, port := range []uint16{clusterapi.AgentVXLANPort, clusterapi.AgentVLANPort} {
		address := netip.AddrPortFrom(o.ctrlIP, port).String()
		g.Go(func() error { return inspect.Serve(ctx, address, rpc) })
	}
	g.Go(func() error {
		return inspect.Serve(ctx, o.restAddress, inspect.Handler(inspect.Sources{
			Driver: driver.Inspect, Names: inspectNames, Agent: func() any { return ag.Status() },
			Reclaim: inspect.Reclaim(driver), Services: driver.ServiceCounts, Rules: driver.RuleHits, Trace: driver.Trace, Checks: checks, Notes: driver.Notes, Metrics: metrics,
			BGP: func(ctx context.Context) (any, error) { return driver.InspectBGP(ctx) },
		}))
	})
	if kube != nil {
		g.Go(func() error { return kube.Run(ctx) })
		g.Go(func() error { return ended(ctx, kube.confirmNode(ctx, ag)) })
	}
	if o.runsCNI() || o.runsMesos() {
		attacher := attachment.New(attachment.Config{
			HostLabel: o.host, Master: master, Agent: ag, Ports: driver, NetworkOf: kube.networkOf(), Pods: kube.living(), EndpointPolicies: kube.guards(),
			Notes: cni.NotesDir(o.cniSocket), Patience: deletePatience, Log: log.WithField("part", "cni"),
		})
		g.Go(func() error { return ended(ctx, attacher.Run(ctx)) })
		if o.runsCNI() {
			g.Go(func() error { return k8splugin.NewServer(attacher).Run(ctx, o.cniSocket) })
		}
		if o.runsMesos() {
			g.Go(func() error { return o.serveMesos(ctx, attacher, ag, log) })
		}
	}
	if o.runsCNI() {
		g.Go(func() error { return o.setUpNode(ctx, checks, log) })
	} else {
		docker, err := dockerServer(o, store, master, ag, driver, log)
		if err != nil {
			return err
		}
		g.Go(func() error { return docker.Run(ctx, o.docker.pluginSocket) })
	}
	log.WithFields(logrus.Fields{"host": o.host, "vtep": o.vtepIP, "ctrl": o.ctrlIP, "mode": o.network.Mode}).Info("netplugin started")
	err = g.Wait()
	log.Info("netplugin stopped; containers, ports and flows stay")
	return err
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

// complaints lists what does not hold.
func complaints(checks map[string]func() error) []string {
	var out []string
	for name, check := range checks {
		if err := check(); err != nil {
			out = append(out, name+": "+err.Error())
		}
	}
	return out
}

// remembered makes a check that is carried out once in a while only.
func remembered(check func() error, age time.Duration) func() error {
	var (
		mu   sync.Mutex
		at   time.Time
		last error
	)
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) >= age {
			last, at = check(), time.Now()
		}
		return last
	}
}

// ended hides the error of a loop that ends because the program does.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
