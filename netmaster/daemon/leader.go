package daemon

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/aci"
	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/api"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/docknet"
	"github.com/contiv/netplugin/netmaster/doctor"
	"github.com/contiv/netplugin/netmaster/flows"
	"github.com/contiv/netplugin/netmaster/hostapi"
	"github.com/contiv/netplugin/netmaster/hostgc"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/objdb"
)

// LeaderConfig is what the parts of a leader need besides the store.
type LeaderConfig struct {
	Log         logrus.FieldLogger
	ClusterMode string      // docker | kubernetes | swarm-mode | test
	FwdMode     string      // bridge | routing; of a new cluster
	Infra       string      // default | aci | aci-opflex; of a new cluster
	AgentPort   int         // where agents serve HTTP; 0 means 9090
	AgentDial   agents.Dial // connects to agents; nil: without TLS
	Docker      Docker      // docker networks, in mode docker
	ACIGateway  string      // URL of the gateway to an ACI fabric; "" means aci.DefaultURL
	// Secrets seals passwords for the store; nil: they are stored as they are. OpenState
	// leaves them in the records of agents, which cannot ask for them without a certificate.
	Secrets   intent.Sealer
	OpenState bool
	// DefaultNetwork is created in a cluster that has no network yet; nil: none is.
	DefaultNetwork *contivmodel.Network
	// Members is what this netmaster knows of the agents; nil: nothing.
	Members *cluster.Members
	// Grace is how long a host may be down before its endpoints are removed; 0 means a day.
	Grace time.Duration
	// Nodes tells of the Kubernetes cluster that hosts are in; nil: they are in none.
	Nodes hostgc.Nodes
	// Own tells netctl doctor of this netmaster; nil: nothing is known.
	Own func() doctor.Own
	// LastLines writes the last lines of the log for support bundles; nil: they are not kept.
	LastLines func(w io.Writer) error
	// RequestTimeout is how long a request waits for the store; 0 means 10 s.
	RequestTimeout time.Duration
}

// Docker says how a cluster has docker networks. The zero value: not at all.
type Docker struct {
	Driver string         // the name Engines know the plugin by
	Shared docknet.Engine // the Engine through which all share networks; nil: every agent makes its own
}

// NewLeader returns what puts the parts of a leader together for each term.
func NewLeader(cfg LeaderConfig) NewController {
	return func(ctx context.Context, store objdb.Store, lead objdb.Leadership) (Controller, error) {
		if cfg.Members == nil {
			cfg.Members = cluster.New("")
		}
		gateway, err := aci.NewClient(cfg.ACIGateway)
		if err != nil {
			return nil, err
		}
		hosts := agents.New(store, cfg.AgentPort, cfg.AgentDial)
		var down *hostgc.Collector
		records := hostapi.New(hostapi.Config{Log: cfg.Log, Store: store, Fence: lead.Fence(), Swarm: cfg.ClusterMode == "swarm-mode"})
		engine, err := intent.New(ctx, intent.Config{
			Log: cfg.Log, ClusterMode: cfg.ClusterMode, FwdMode: cfg.FwdMode, Infra: cfg.Infra, AgentPort: cfg.AgentPort, AgentDial: cfg.AgentDial,
			Secrets: cfg.Secrets, OpenState: cfg.OpenState,
			Loops: func(e *intent.Engine) []reconcile.Loop {
				fabric := aci.New(aci.Config{
					Log: cfg.Log, Store: store, Fence: lead.Fence(), Gateway: gateway,
					Announce: func(ctx context.Context, group int) { announce(ctx, cfg.Log, hosts, group) },
				}, e)
				down = hostgc.New(hostgc.Config{
					Log: cfg.Log, Store: store, Fence: lead.Fence(), Members: cfg.Members, Grace: cfg.Grace, Nodes: cfg.Nodes,
				}, e)
				loops := []reconcile.Loop{fabric, down, records}
				if n := cfg.dockerNetworks(e, store, lead.Fence()); n != nil {
					return slices.Insert(loops, 0, reconcile.Loop(docknet.Loop{Networks: n, Source: e}))
				}
				return loops
			},
		}, store, lead)
		if err != nil {
			return nil, err
		}
		if cfg.DefaultNetwork != nil {
			if err := makeDefaultNetwork(ctx, engine, *cfg.DefaultNetwork); err != nil {
				cfg.Log.WithError(err).Error("cannot create the default network; containers that name no network cannot be attached")
			}
		}
		return &leader{Handler: api.New(api.Config{Log: cfg.Log, Members: cfg.Members, Hosts: down, Records: records, Doctor: doctor.Config{Agents: hosts, Store: store, Own: cfg.Own}, LastLines: cfg.LastLines, Flows: flows.New(ctx, hosts, engine), Timeout: cfg.RequestTimeout}, engine), engine: engine}, nil
	}
}

// dockerNetworks returns who makes the docker networks of a cluster; nil for nobody.
func (cfg LeaderConfig) dockerNetworks(e *intent.Engine, store objdb.Store, fence objdb.Cmp) docknet.Networks {
	switch {
	case cfg.ClusterMode == "swarm-mode":
		return docknet.Mapped{Store: store}
	case cfg.ClusterMode != "docker":
		return nil
	case cfg.Docker.Shared == nil:
		return docknet.Hosts{Store: store}
	default:
		return docknet.New(docknet.Config{Log: cfg.Log, Store: store, Fence: fence, Engine: cfg.Docker.Shared, Driver: cfg.Docker.Driver}, e)
	}
}

// announce has all hosts announce the endpoints of a group, and logs the outcome.
func announce(ctx context.Context, log logrus.FieldLogger, hosts *agents.Client, group int) {
	n, err := hosts.Announce(ctx, group)
	entry := log.WithField("group", group).WithField("endpoints", n)
	if err != nil {
		entry.WithError(err).Warn("some hosts did not announce the endpoints of a group")
		return
	}
	entry.Info("hosts announced the endpoints of a group")
}

// leader is the Controller of one term.
type leader struct {
	*api.Handler
	engine *intent.Engine
}

var (
	_ http.Handler = (*leader)(nil)
	_ interface {
		Collect(chan<- prometheus.Metric)
	} = (*leader)(nil)
)

// Wait implements Controller.
func (l *leader) Wait() { <-l.engine.Done() }
