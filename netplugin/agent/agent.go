// Package agent keeps one host in sync with the store. It follows the state
// prefix in one ordered watch, joins the records (an endpoint with its network and
// its host) and declares the result to the driver. It never depends on the previous
// event: every object is declared as a whole, and a snapshot is a list like any other.
package agent

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/netplugin/records"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/masterapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// Config is an agent's identity and dependencies.
type Config struct {
	HostLabel string
	VTEP      netip.Addr
	CtrlIP    netip.Addr
	MTU       int         // bytes that fit through this host's tunnels; 0: unknown
	FwdMode   string      // what the agent was started with; must agree with the global settings
	Store     objdb.Store // read only
	Master    Master
	Driver    Driver
	// BGPSecret, if set, asks the leader for the password of this host's BGP speaker, which
	// is not in the store where passwords are sealed.
	BGPSecret func(ctx context.Context, host string) (string, error)
	// Addresses, if set, lists the addresses of this host.
	Addresses func() []netip.Addr
	// AllTenants: this host needs the records of all tenants, not only of those it has
	// something of.
	AllTenants bool
	// OnBatch, if set, receives every batch of the state prefix, as far as it concerns this host, before
	// the driver does. It must not call the agent.
	OnBatch func(objdb.Batch)
	Log     logrus.FieldLogger
}

// Master writes what this host has in the store; see cluster.Master. It waits for a
// leader until ctx ends. Calls may be repeated.
type Master interface {
	PutHostRecords(ctx context.Context, host string, r masterapi.HostRecords) error
}

// Driver is what the agent needs of one.
type Driver interface {
	drivers.Driver
	Attachments() []drivers.Attachment
	Ready() error
}

// Agent is one host's agent. Create it with New.
type Agent struct {
	cfg Config

	mu        sync.Mutex
	networks  map[string]drivers.Network
	records   map[string]state.Network // of the networks
	endpoints map[string]state.Endpoint
	byNetwork map[string]map[string]struct{} // endpoint ids by network id
	byHost    map[string]map[string]struct{} // endpoint ids by homing host
	byGroup   map[string]map[string]struct{} // endpoint ids by group id
	hosts     map[string]netip.Addr          // VTEP by host label
	links     map[string]netip.Prefix        // subnet of the routers, by host label of each BGP speaker
	speaker   speaker
	groups    map[string]state.EndpointGroup
	rules     map[string]struct{} // ids of those declared
	services  services
	global    *state.Global
	revision  int64 // store revision up to which everything has been declared
	settings  int64 // store revision of the global settings that have been declared
	loaded    bool  // the first snapshot has been declared
	emptied   bool  // the last snapshot was held back
	guard     guard
	kept      *records.Records
	changed   signal.Signal

	metrics  *metrics
	oper     *operWriter
	hostKick chan struct{}
	node     string // this host's Node, once it is known that there is one
}

// New makes an agent; it does nothing before Run.
func New(cfg Config) *Agent {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	a := &Agent{
		cfg: cfg, networks: map[string]drivers.Network{}, records: map[string]state.Network{}, endpoints: map[string]state.Endpoint{},
		byNetwork: map[string]map[string]struct{}{}, byHost: map[string]map[string]struct{}{}, byGroup: map[string]map[string]struct{}{},
		hosts: map[string]netip.Addr{}, links: map[string]netip.Prefix{}, groups: map[string]state.EndpointGroup{}, rules: map[string]struct{}{}, services: newServices(), speaker: newSpeaker(),
		hostKick: make(chan struct{}, 1), metrics: newMetrics(), kept: records.New(cfg.HostLabel, cfg.AllTenants),
	}
	a.oper = newOperWriter(cfg, a.operRecords)
	return a
}

// Run follows the store until ctx ends. It returns another error only when the host
// is configured against the cluster's settings.
func (a *Agent) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.followGlobal(ctx) })
	g.Go(func() error {
		for batch := range a.cfg.Store.Watch(ctx, state.StateRoot) {
			batch, ok := a.admit(batch)
			if !ok {
				continue
			}
			if a.cfg.OnBatch != nil {
				a.cfg.OnBatch(batch)
			}
			began := time.Now()
			a.apply(batch)
			a.metrics.count(batch, time.Since(began))
		}
		return ctx.Err()
	})
	g.Go(func() error { return a.publishHost(ctx) })
	g.Go(func() error { return a.askSecrets(ctx) })
	g.Go(func() error { return a.oper.run(ctx) })
	err := g.Wait()
	if errs.Is(err, errs.Invalid) {
		return err
	}
	return nil
}

// admit keeps a batch and returns the part of it to apply, if any, and logs what is withheld.
func (a *Agent) admit(b objdb.Batch) (objdb.Batch, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, ok := a.guard.admit(b, a.loaded && len(a.byHost[a.cfg.HostLabel]) > 0)
	if a.emptied == ok {
		a.emptied = !ok
		if !ok {
			a.cfg.Log.Error("the store has no network any more, while containers of this host are in some: their flows are kept until the store has networks again, or the agent is restarted")
		} else {
			a.cfg.Log.Info("the store has networks again; flows follow it")
		}
		a.broadcast()
	}
	if !ok {
		return b, false
	}
	b, err := a.kept.Take(b)
	if err != nil {
		a.cfg.Log.WithError(err).Error("records of tenants that have come to this host, or left it, are missing; restart the agent")
	}
	return b, true
}

// followGlobal waits for the global settings, which the first leader writes, and
// forwards every change.
func (a *Agent) followGlobal(ctx context.Context) error {
	first := true
	for batch := range a.cfg.Store.Watch(ctx, state.GlobalKey) {
		for _, ev := range batch.Events {
			if ev.KV.Key != state.GlobalKey || ev.Deleted {
				continue
			}
			var g state.Global
			if err := json.Unmarshal(ev.KV.Value, &g); err != nil {
				a.cfg.Log.WithError(err).Error("unreadable global settings are ignored")
				continue
			}
			if g.FwdMode == "" || g.PvtSubnet == "" {
				continue
			}
			if first && a.cfg.FwdMode != "" && a.cfg.FwdMode != g.FwdMode {
				return errs.New(errs.Invalid, "netplugin's local forward mode %q doesn't match global settings %q; start netplugin with --fwdmode %s, or change it with netctl global set --fwd-mode",
					a.cfg.FwdMode, g.FwdMode, g.FwdMode)
			}
			resolved, err := asGlobal(g)
			if err != nil {
				a.cfg.Log.WithError(err).Error("global settings are ignored")
				continue
			}
			first = false
			a.cfg.Driver.Apply(resolved)
			a.mu.Lock()
			a.global, a.settings = &g, ev.KV.ModRevision
			a.synced()
			a.broadcast()
			a.mu.Unlock()
		}
	}
	return ctx.Err()
}

// synced tells the driver that everything has been declared, once that is true.
func (a *Agent) synced() {
	if a.loaded && a.global != nil {
		a.cfg.Driver.Synced(drivers.SourceStore)
	}
}

func (a *Agent) broadcast() {
	a.changed.Broadcast()
}

// Network returns a network, waiting for it to become known, and for this host's record
// to be in the store: other hosts accept nothing from a tunnel address that they do not
// know, and so learn of the host before any endpoint it asks for. If either is missing when ctx
// ends, the error says which.
func (a *Agent) Network(ctx context.Context, id string) (drivers.Network, error) {
	for {
		a.mu.Lock()
		n, ok := a.networks[id]
		published := a.hosts[a.cfg.HostLabel] == a.cfg.VTEP
		changed, loaded := a.changed.Next(), a.loaded
		a.mu.Unlock()
		if ok && published {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !loaded {
				return n, errs.New(errs.Unavailable, "network %s: the store has not been read yet: %w", id, ctx.Err())
			}
			if !published {
				return n, errs.New(errs.Unavailable, "network %s: the store does not have the record of this host with its tunnel address %s yet: %w", id, a.cfg.VTEP, ctx.Err())
			}
			return n, errs.New(errs.NotFound, "network %s is not known on this host", id)
		}
	}
}

// KnownNetwork returns a network if it is known now.
func (a *Agent) KnownNetwork(id string) (drivers.Network, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.networks[id]
	return n, ok
}

// MissingInfra lists the infra networks in which this host has no endpoint of its own,
// and a channel that is closed when that may have changed.
func (a *Agent) MissingInfra() ([]drivers.Network, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []drivers.Network
	for id, n := range a.networks {
		if _, ok := a.endpoints[state.EndpointID(id, a.cfg.HostLabel)]; n.Infra && !ok {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(x, y drivers.Network) int { return strings.Compare(x.ID, y.ID) })
	return out, a.changed.Next()
}

// LocalEndpoints lists the records of endpoints homed on this host.
func (a *Agent) LocalEndpoints() []state.Endpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []state.Endpoint
	for id := range a.byHost[a.cfg.HostLabel] {
		out = append(out, a.endpoints[id])
	}
	return out
}

// PortsChanged says that a container of this host was attached or detached.
func (a *Agent) PortsChanged() { a.oper.wake() }

// operRecords are the operational records of this host's endpoints.
func (a *Agent) operRecords() (map[string]state.OperEndpoint, bool) {
	if a.Ready() != nil || a.cfg.Driver.Ready() != nil {
		return nil, false
	}
	attachments := a.cfg.Driver.Attachments()
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]state.OperEndpoint, len(attachments))
	for _, at := range attachments {
		rec, ok := a.endpoints[at.EndpointID]
		if !ok || rec.HomingHost != a.cfg.HostLabel {
			continue
		}
		out[rec.ID] = state.OperEndpoint{
			ID: rec.ID, NetID: rec.NetID, EndpointID: rec.EndpointID, ServiceName: rec.ServiceName, ContUUID: rec.ContainerID,
			IPAddress: rec.IPAddress, IPv6Address: rec.IPv6Address, MacAddress: rec.MacAddress, HomingHost: rec.HomingHost,
			IntfName: rec.IntfName, PortName: at.Port.Name,
		}
	}
	return out, true
}

// Progress returns how far the agent has followed the store: up to which store revision
// the state has been declared to the driver, and at which one the global settings have;
// 0 when none has. changed is closed when there is more.
func (a *Agent) Progress() (revision, settings int64, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revision, a.settings, a.changed.Next()
}

// Status is the agent in numbers.
type Status struct {
	Revision                    int64
	Networks, Endpoints, Locals int
	Hosts, Rules, Services      int
	// Packed is how many bytes the records of all tenants take, of which the numbers above
	// are those of tenants on this host.
	Packed int
}

// Status returns the agent in numbers.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Status{
		Revision: a.revision, Networks: len(a.networks), Endpoints: len(a.endpoints),
		Locals: len(a.byHost[a.cfg.HostLabel]), Hosts: len(a.hosts), Rules: len(a.rules), Services: len(a.services.records),
		Packed: a.kept.Size(),
	}
}

// Ready returns nil when the store has been read and the settings are known, or what
// the agent is waiting for.
func (a *Agent) Ready() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.loaded:
		return errs.New(errs.Unavailable, "waiting for the store")
	case a.emptied:
		return errs.New(errs.Unavailable, "the store has no network any more, while containers of this host are in some; was it emptied, or has this host lost its right to read it?")
	case a.global == nil:
		return errs.New(errs.Unavailable, "waiting for the global settings; is a netmaster running?")
	}
	return nil
}
