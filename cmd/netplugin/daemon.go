package main

import (
	"context"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/netplugin/flowlog"
	"github.com/contiv/netplugin/netplugin/flowlog/export"
	"github.com/contiv/netplugin/netplugin/nameserver"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/open"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/pki"
)

// daemon holds the parts of netplugin, wired but not running yet.
type daemon struct {
	o      *options
	log    *logrus.Logger
	store  objdb.Store
	names  *nameserver.Server // nil: DNS queries are not answered here
	reach  reach
	driver *ovsd.Driver
	flows  *flowlog.Log // nil: connections are not logged
	export export.Exporters
	audit  *export.Exporter // one of export; nil: connections are not logged
	kube   *kubernetes      // nil outside Kubernetes
	agent  *agent.Agent
	master *cluster.Master
	creds  *pki.Credentials // of this host; nil in mode off
}

// newDaemon connects to nothing yet: the parts wait for what they need when they run.
func newDaemon(o *options, m member, log *logrus.Logger) (*daemon, error) {
	d := &daemon{o: o, log: log, creds: m.creds}
	var err error
	d.master = cluster.NewMaster(d.dial())
	if d.store, err = open.Agent(o.store, d.creds, o.secure.Mode); err != nil {
		return nil, err
	}
	if err := d.wire(); err != nil {
		d.store.Close()
		return nil, err
	}
	return d, nil
}

func (d *daemon) wire() error {
	o := d.o
	var err error
	if d.names, err = o.names.server(o.network.Mode, d.log.WithField("part", "dns")); err != nil {
		return err
	}
	apiServer, err := o.apiServer()
	if err != nil {
		return err
	}
	if d.reach, err = o.containerReach(apiServer); err != nil {
		return err
	}
	d.flows = o.flows.log(o.host, d.podAt, d.log.WithField("part", "flows"))
	if d.export, err = o.flows.exporters(o.host, d.log.WithField("part", "flows")); err != nil {
		return err
	}
	if d.audit = o.flows.audit(o.host, d.log.WithField("part", "flows")); d.audit != nil {
		d.export = append(d.export, d.audit)
	}
	if d.driver, err = ovsd.New(d.switchConfig(o.sources(apiServer))); err != nil {
		return err
	}
	declared := observedDriver{d.driver, d.flows}
	if d.kube, err = o.kubernetes(declared, d.log); err != nil {
		return err
	}
	d.agent = agent.New(agent.Config{
		HostLabel: o.host, VTEP: o.vtepIP, CtrlIP: o.ctrlIP, FwdMode: o.network.FwdMode, MTU: ovsd.TunnelMTU(o.vtepIP),
		Store: d.store, Master: d.master, Driver: declared, Log: d.log.WithField("part", "agent"),
		AllTenants: d.kube != nil, // drivers.ClusterReach
		OnBatch:    d.onBatch,
		BGPSecret:  d.master.BGPSecret,
		Addresses:  localAddresses,
	})
	return nil
}

// podAt names the pod of a tenant with an address, as namespace/name; empty: none.
func (d *daemon) podAt(tenant string, a netip.Addr) string {
	if d.kube == nil || d.kube.policies == nil {
		return ""
	}
	return d.kube.policies.PodAt(tenant, a)
}

// switchConfig is the configuration of the driver; sources are those that declare
// objects besides the store.
func (d *daemon) switchConfig(sources []drivers.Source) ovsd.Config {
	o := d.o
	c := ovsd.Config{
		ControlPorts: d.reach.closed, TunnelPorts: d.reach.tunnels, Sources: sources,
		HostLabel: o.host, OVSDB: o.ovsdb, Datapath: o.datapath, VTEP: o.vtepIP, CtrlIP: o.ctrlIP, VXLANPort: uint16(o.vxlanPort),
		ConnectionRate: uint32(o.connectionRate), ConnectionLimit: uint32(o.connectionLimit),
		Uplinks: o.uplinks, Takeover: o.takeover, AllowSpoofing: o.allowSpoofing, EndpointPolicies: o.endpointPolicies(), Log: d.log.WithField("part", "ovs"),
	}
	if d.names != nil {
		c.NameServer, c.DNSRate = d.names, uint32(o.names.rate)
	}
	if d.flows != nil {
		c.FlowLog, c.Denied = o.flows.mode(), d.flows.Denied
	}
	return c
}

// onBatch passes changes of the store on to the parts besides the driver that need them.
func (d *daemon) onBatch(b objdb.Batch) {
	if d.names != nil {
		d.names.Apply(b)
	}
	if d.flows != nil {
		d.flows.Apply(b)
	}
	d.kube.Apply(b)
}

// metrics are those of all parts.
func (d *daemon) metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(d.driver.Collector(), d.agent.Collector())
	if d.names != nil {
		registry.MustRegister(d.names.Collectors()...)
	}
	if d.flows != nil {
		registry.MustRegister(d.flows, d.export)
	}
	return registry
}

// notes are what should not have happened, or not go on, but keeps no container from being
// attached.
func (d *daemon) notes() map[string]string {
	notes := d.driver.Notes()
	if d.audit != nil && d.audit.Failing() != nil {
		notes["audit"] = "the audit file gets nothing: " + d.audit.Failing().Error()
	}
	return notes
}

// checks are what must hold for containers to be attached, by the name that /readyz gives
// each.
func (d *daemon) checks(ctx context.Context) map[string]func() error {
	checks := map[string]func() error{
		"store": func() error {
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return d.store.Health(soon)
		},
		"agent":  d.agent.Ready,
		"switch": d.driver.Ready,
		"host":   d.driver.HostReady,
		"netmaster": func() error {
			if d.master.Leader() == "" {
				return errs.New(errs.Unavailable, "no netmaster is the leader; is one running?")
			}
			return nil
		},
	}
	d.kube.check(checks)
	return checks
}
