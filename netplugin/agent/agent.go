// Package agent keeps one host equal to what the store says. It follows the state
// prefix in one ordered watch, joins the records (an endpoint with its network and
// its host) and declares the result to the driver. It never asks what the previous
// event was: every object is declared whole, and a snapshot is a list like any other.
package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// Config says who the agent is and what it works with.
type Config struct {
	HostLabel string
	VTEP      netip.Addr
	CtrlIP    netip.Addr
	FwdMode   string // what the agent was started with; must agree with the global settings
	Store     objdb.Store
	Driver    drivers.Driver
	// OnPeers, if set, is told the tunnel addresses of the other hosts by label. It
	// must not call the agent.
	OnPeers func(map[string]netip.Addr)
	Log     logrus.FieldLogger
}

// Agent is one host's agent. Create it with New.
type Agent struct {
	cfg Config

	mu        sync.Mutex
	networks  map[string]drivers.Network
	endpoints map[string]state.Endpoint
	byNetwork map[string]map[string]struct{} // endpoint ids by network id
	byHost    map[string]map[string]struct{} // endpoint ids by homing host
	byGroup   map[string]map[string]struct{} // endpoint ids by group id
	hosts     map[string]netip.Addr          // VTEP by host label
	groups    map[string]state.EndpointGroup
	rules     map[string]struct{} // ids of those declared
	global    *state.Global
	revision  int64 // store revision up to which everything has been declared
	loaded    bool  // the first snapshot has been declared
	changed   chan struct{}

	oper     *operWriter
	hostKick chan struct{}
}

// New makes an agent; it does nothing before Run.
func New(cfg Config) *Agent {
	if cfg.Log == nil {
		cfg.Log = logrus.StandardLogger()
	}
	a := &Agent{
		cfg: cfg, networks: map[string]drivers.Network{}, endpoints: map[string]state.Endpoint{},
		byNetwork: map[string]map[string]struct{}{}, byHost: map[string]map[string]struct{}{}, byGroup: map[string]map[string]struct{}{},
		hosts: map[string]netip.Addr{}, groups: map[string]state.EndpointGroup{}, rules: map[string]struct{}{},
		changed: make(chan struct{}), hostKick: make(chan struct{}, 1),
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
			a.apply(batch)
		}
		return ctx.Err()
	})
	g.Go(func() error { return a.publishHost(ctx) })
	g.Go(func() error { return a.oper.run(ctx) })
	err := g.Wait()
	if errs.Is(err, errs.Invalid) {
		return err
	}
	return nil
}

// followGlobal waits for the global settings, which the first leader writes, and
// passes every change on.
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
			a.cfg.Driver.SetGlobal(resolved)
			a.mu.Lock()
			a.global = &g
			a.complete()
			a.broadcast()
			a.mu.Unlock()
		}
	}
	return ctx.Err()
}

// complete tells the driver that everything has been declared, once that is so.
func (a *Agent) complete() {
	if a.loaded && a.global != nil {
		a.cfg.Driver.Complete()
	}
}

func (a *Agent) broadcast() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// apply declares one batch.
func (a *Agent) apply(batch objdb.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if batch.Snapshot {
		a.forgetMissing(batch)
	}
	// Networks and hosts first: an endpoint of the same batch then finds them.
	for _, ev := range batch.Events {
		switch {
		case strings.HasPrefix(ev.KV.Key, state.NetworkRoot):
			applyEvent(a, ev, state.NetworkRoot, a.setNetwork, a.removeNetwork)
		case strings.HasPrefix(ev.KV.Key, state.HostRoot):
			applyEvent(a, ev, state.HostRoot, a.setHost, a.removeHost)
		case strings.HasPrefix(ev.KV.Key, state.GroupRoot):
			applyEvent(a, ev, state.GroupRoot, a.setGroup, a.removeGroup)
		case strings.HasPrefix(ev.KV.Key, state.PolicyRuleRoot):
			applyEvent(a, ev, state.PolicyRuleRoot, a.setRule, a.removeRule)
		}
	}
	// Deletions before additions: an address may have moved from one endpoint to another.
	for _, ev := range batch.Events {
		if ev.Deleted && strings.HasPrefix(ev.KV.Key, state.EndpointRoot) {
			a.removeEndpoint(strings.TrimPrefix(ev.KV.Key, state.EndpointRoot))
		}
	}
	for _, ev := range batch.Events {
		if !ev.Deleted && strings.HasPrefix(ev.KV.Key, state.EndpointRoot) {
			applyEvent(a, ev, state.EndpointRoot, a.setEndpoint, a.removeEndpoint)
		}
	}
	a.revision = batch.Revision
	if batch.Snapshot && !a.loaded {
		a.loaded = true
		a.cfg.Log.WithFields(logrus.Fields{
			"revision": batch.Revision, "networks": len(a.networks), "endpoints": len(a.endpoints), "hosts": len(a.hosts),
		}).Info("state loaded")
		a.complete()
	}
	a.broadcast()
}

// forgetMissing takes back what a snapshot does not contain.
func (a *Agent) forgetMissing(batch objdb.Batch) {
	present := make(map[string]struct{}, len(batch.Events))
	for _, ev := range batch.Events {
		present[ev.KV.Key] = struct{}{}
	}
	missing := func(prefix, id string) bool { _, ok := present[prefix+id]; return !ok }
	for id := range a.endpoints {
		if missing(state.EndpointRoot, id) {
			a.removeEndpoint(id)
		}
	}
	for id := range a.networks {
		if missing(state.NetworkRoot, id) {
			a.removeNetwork(id)
		}
	}
	for id := range a.hosts {
		if missing(state.HostRoot, id) {
			a.removeHost(id)
		}
	}
	for id := range a.groups {
		if missing(state.GroupRoot, id) {
			a.removeGroup(id)
		}
	}
	for id := range a.rules {
		if missing(state.PolicyRuleRoot, id) {
			a.removeRule(id)
		}
	}
}

func applyEvent[T any](a *Agent, ev objdb.Event, prefix string, set func(T), remove func(string)) {
	if ev.Deleted {
		remove(strings.TrimPrefix(ev.KV.Key, prefix))
		return
	}
	var v T
	if err := json.Unmarshal(ev.KV.Value, &v); err != nil {
		a.cfg.Log.WithError(err).WithField("key", ev.KV.Key).Error("an unreadable record is ignored")
		return
	}
	set(v)
}

func (a *Agent) setNetwork(rec state.Network) {
	n, err := asNetwork(rec)
	if err != nil {
		a.cfg.Log.WithError(err).Error("a network is ignored")
		return
	}
	if a.networks[n.ID] == n {
		return
	}
	a.networks[n.ID] = n
	a.cfg.Driver.SetNetwork(n)
	for id := range a.byNetwork[n.ID] {
		a.declare(id)
	}
}

// setGroup notes a group; what it says about quality of service goes to its endpoints.
func (a *Agent) setGroup(g state.EndpointGroup) {
	if _, err := asQoS(g); err != nil {
		a.cfg.Log.WithError(err).Error("a part of a group's quality of service is ignored")
	}
	old := a.groups[g.ID]
	a.groups[g.ID] = g
	if old.DSCP != g.DSCP || old.Bandwidth != g.Bandwidth || old.Burst != g.Burst {
		a.declareGroup(g.ID)
	}
}

func (a *Agent) removeGroup(id string) {
	delete(a.groups, id)
	a.declareGroup(id)
}

// declareGroup declares the endpoints of this host that are in a group.
func (a *Agent) declareGroup(id string) {
	for ep := range a.byGroup[id] {
		if a.endpoints[ep].HomingHost == a.cfg.HostLabel {
			a.declare(ep)
		}
	}
}

func (a *Agent) setRule(rec state.PolicyRule) {
	r, err := asRule(rec)
	if err != nil {
		a.cfg.Log.WithError(err).Error("a rule is ignored")
		a.removeRule(rec.RuleID)
		return
	}
	a.rules[r.ID] = struct{}{}
	a.cfg.Driver.SetRule(r)
}

func (a *Agent) removeRule(id string) {
	if _, ok := a.rules[id]; ok {
		delete(a.rules, id)
		a.cfg.Driver.RemoveRule(id)
	}
}

// removeNetwork takes a network back. Endpoints still in it go as well: netmaster
// deletes them first, so this concerns leftovers only.
func (a *Agent) removeNetwork(id string) {
	delete(a.networks, id)
	for ep := range a.byNetwork[id] {
		a.cfg.Driver.RemoveEndpoint(ep)
	}
	a.cfg.Driver.RemoveNetwork(id)
}

func (a *Agent) setHost(rec state.Host) {
	vtep, err := netip.ParseAddr(rec.VtepIP)
	if err != nil {
		a.cfg.Log.WithError(err).WithField("host", rec.ID).Error("a host with an unreadable tunnel address is ignored")
		return
	}
	if rec.ID == a.cfg.HostLabel {
		a.kickHost()
	}
	if a.hosts[rec.ID] == vtep {
		return
	}
	a.hosts[rec.ID] = vtep
	a.tellPeers()
	for id := range a.byHost[rec.ID] {
		a.declare(id)
	}
}

// removeHost forgets a host; its endpoints lose their tunnel address.
func (a *Agent) removeHost(label string) {
	delete(a.hosts, label)
	a.tellPeers()
	if label == a.cfg.HostLabel {
		a.kickHost()
	}
	for id := range a.byHost[label] {
		a.declare(id)
	}
}

func (a *Agent) setEndpoint(rec state.Endpoint) {
	if old, ok := a.endpoints[rec.ID]; ok && (old.NetID != rec.NetID || old.HomingHost != rec.HomingHost || old.EndpointGroupKey != rec.EndpointGroupKey) {
		a.unindex(old)
	}
	a.endpoints[rec.ID] = rec
	index(a.byNetwork, rec.NetID, rec.ID)
	index(a.byHost, rec.HomingHost, rec.ID)
	index(a.byGroup, rec.EndpointGroupKey, rec.ID)
	a.declare(rec.ID)
	if rec.HomingHost == a.cfg.HostLabel {
		a.oper.wake()
	}
}

func (a *Agent) removeEndpoint(id string) {
	rec, ok := a.endpoints[id]
	if !ok {
		return
	}
	a.unindex(rec)
	delete(a.endpoints, id)
	a.cfg.Driver.RemoveEndpoint(id)
	if rec.HomingHost == a.cfg.HostLabel {
		a.oper.wake()
	}
}

// declare tells the driver of an endpoint, as far as what it needs is known.
func (a *Agent) declare(id string) {
	rec := a.endpoints[id]
	n, ok := a.networks[rec.NetID]
	if !ok {
		return // the network's record declares it when it comes
	}
	ep, err := asEndpoint(rec, n, rec.HomingHost == a.cfg.HostLabel, a.hosts[rec.HomingHost])
	if err != nil {
		a.cfg.Log.WithError(err).Error("an endpoint is ignored")
		return
	}
	if ep.Local {
		ep.QoS, _ = asQoS(a.groups[rec.EndpointGroupKey]) // complained about with the group
	}
	a.cfg.Driver.SetEndpoint(ep)
}

func index(m map[string]map[string]struct{}, key, id string) {
	if m[key] == nil {
		m[key] = map[string]struct{}{}
	}
	m[key][id] = struct{}{}
}

func (a *Agent) unindex(rec state.Endpoint) {
	for m, key := range map[*map[string]map[string]struct{}]string{&a.byNetwork: rec.NetID, &a.byHost: rec.HomingHost, &a.byGroup: rec.EndpointGroupKey} {
		delete((*m)[key], rec.ID)
		if len((*m)[key]) == 0 {
			delete(*m, key)
		}
	}
}

// Network returns a network, waiting for it to become known. Without it at ctx's end
// the error says so.
func (a *Agent) Network(ctx context.Context, id string) (drivers.Network, error) {
	for {
		a.mu.Lock()
		n, ok := a.networks[id]
		changed, loaded := a.changed, a.loaded
		a.mu.Unlock()
		if ok {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if !loaded {
				return n, errs.New(errs.Unavailable, "network %s: the store has not been read yet: %w", id, ctx.Err())
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

// operRecords says what was done for each endpoint of this host.
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

// tellPeers passes the other hosts' tunnel addresses on. The caller holds mu.
func (a *Agent) tellPeers() {
	if a.cfg.OnPeers == nil {
		return
	}
	peers := maps.Clone(a.hosts)
	delete(peers, a.cfg.HostLabel)
	a.cfg.OnPeers(peers)
}

// Status is the agent in numbers.
type Status struct {
	Revision                    int64
	Networks, Endpoints, Locals int
	Hosts, Rules                int
}

// Status returns the agent in numbers.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Status{
		Revision: a.revision, Networks: len(a.networks), Endpoints: len(a.endpoints),
		Locals: len(a.byHost[a.cfg.HostLabel]), Hosts: len(a.hosts), Rules: len(a.rules),
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
	case a.global == nil:
		return errs.New(errs.Unavailable, "waiting for the global settings; is a netmaster running?")
	}
	return nil
}

func (a *Agent) kickHost() {
	select {
	case a.hostKick <- struct{}{}:
	default:
	}
}

// publishHost keeps this host's record as it should be. The record stays when the
// agent goes: the host's containers remain reachable.
func (a *Agent) publishHost(ctx context.Context) error {
	want := state.Host{ID: a.cfg.HostLabel, VtepIP: a.cfg.VTEP.String(), CtrlIP: a.cfg.CtrlIP.String()}
	value, err := json.Marshal(want)
	if err != nil {
		return err
	}
	key := state.HostRoot + want.ID
	for {
		wait := time.Duration(-1)
		if err := putIfDifferent(ctx, a.cfg.Store, key, value); err != nil && ctx.Err() == nil {
			a.cfg.Log.WithError(err).Warn("cannot publish this host; retrying")
			wait = time.Second
		}
		var retry <-chan time.Time
		if wait > 0 {
			retry = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.hostKick:
		case <-retry:
		}
	}
}

func putIfDifferent(ctx context.Context, store objdb.Store, key string, value []byte) error {
	kv, err := store.Get(ctx, key)
	if err == nil && string(kv.Value) == string(value) {
		return nil
	}
	if err != nil && !errs.Is(err, errs.NotFound) {
		return err
	}
	if _, err := store.Commit(ctx, objdb.Txn{Then: []objdb.Op{objdb.Put(key, value)}}); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}
