// Package fakedriver is a drivers.Driver in memory, for tests of what uses one. It
// moves no packets and makes no interfaces, but keeps the driver's promises about
// declarations and attachments.
package fakedriver

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
	"github.com/contiv/netplugin/utils/errs"
)

// Driver implements drivers.Driver. The zero value is not ready; use New.
type Driver struct {
	mu        sync.Mutex
	global    drivers.Global
	networks  map[string]drivers.Network
	endpoints map[string]drivers.Endpoint
	rules     map[string]drivers.Rule
	services  map[string]drivers.Service
	sets      map[string]drivers.PolicyRuleSet
	guards    map[string]drivers.EndpointPolicy
	speaker   *bgp.Config
	attached  map[string]drivers.Attachment
	complete  bool
	next      int
	changed   chan struct{}
	fail      error
	stuck     error
	unwell    error
}

var _ drivers.Driver = (*Driver)(nil)

// New makes a driver that has nothing.
func New() *Driver {
	return &Driver{
		networks: map[string]drivers.Network{}, endpoints: map[string]drivers.Endpoint{},
		rules: map[string]drivers.Rule{}, services: map[string]drivers.Service{},
		sets: map[string]drivers.PolicyRuleSet{}, guards: map[string]drivers.EndpointPolicy{}, attached: map[string]drivers.Attachment{}, changed: make(chan struct{}),
	}
}

// FailAttach makes Attach fail with err until it is called with nil.
func (d *Driver) FailAttach(err error) { d.with(func() { d.fail = err }) }

// FailDetach makes Detach fail with err until it is called with nil.
func (d *Driver) FailDetach(err error) { d.with(func() { d.stuck = err }) }

func (d *Driver) with(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	close(d.changed)
	d.changed = make(chan struct{})
}

// Unwell makes Ready fail with err until it is called with nil.
func (d *Driver) Unwell(err error) { d.with(func() { d.unwell = err }) }

// Run waits for ctx.
func (d *Driver) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// SetGlobal implements drivers.Driver.
func (d *Driver) SetGlobal(g drivers.Global) { d.with(func() { d.global = g }) }

// SetNetwork implements drivers.Driver.
func (d *Driver) SetNetwork(n drivers.Network) { d.with(func() { d.networks[n.ID] = n }) }

// RemoveNetwork implements drivers.Driver.
func (d *Driver) RemoveNetwork(id string) { d.with(func() { delete(d.networks, id) }) }

// SetEndpoint implements drivers.Driver.
func (d *Driver) SetEndpoint(e drivers.Endpoint) { d.with(func() { d.endpoints[e.ID] = e }) }

// RemoveEndpoint implements drivers.Driver.
func (d *Driver) RemoveEndpoint(id string) { d.with(func() { delete(d.endpoints, id) }) }

// SetRule implements drivers.Driver.
func (d *Driver) SetRule(r drivers.Rule) { d.with(func() { d.rules[r.ID] = r }) }

// RemoveRule implements drivers.Driver.
func (d *Driver) RemoveRule(id string) { d.with(func() { delete(d.rules, id) }) }

// SetService implements drivers.Driver.
func (d *Driver) SetService(s drivers.Service) { d.with(func() { d.services[s.ID] = s }) }

// RemoveService implements drivers.Driver.
func (d *Driver) RemoveService(id string) { d.with(func() { delete(d.services, id) }) }

// RuleHits implements drivers.Driver: nothing is judged in memory.
func (d *Driver) RuleHits(context.Context) (map[string]drivers.Hits, error) { return nil, nil }

// SetPolicyRuleSet implements drivers.Driver.
func (d *Driver) SetPolicyRuleSet(s drivers.PolicyRuleSet) { d.with(func() { d.sets[s.ID] = s }) }

// RemovePolicyRuleSet implements drivers.Driver.
func (d *Driver) RemovePolicyRuleSet(id string) { d.with(func() { delete(d.sets, id) }) }

// SetEndpointPolicy implements drivers.Driver.
func (d *Driver) SetEndpointPolicy(g drivers.EndpointPolicy) {
	d.with(func() { d.guards[g.EndpointID] = g })
}

// RemoveEndpointPolicy implements drivers.Driver.
func (d *Driver) RemoveEndpointPolicy(endpointID string) {
	d.with(func() { delete(d.guards, endpointID) })
}

// KeepServices implements drivers.Driver: there is no predecessor.
func (d *Driver) KeepServices() {}

// ReleaseServices implements drivers.Driver.
func (d *Driver) ReleaseServices() {}

// KeepEndpointPolicies implements drivers.Driver: there is no predecessor.
func (d *Driver) KeepEndpointPolicies() {}

// ReleaseEndpointPolicies implements drivers.Driver.
func (d *Driver) ReleaseEndpointPolicies() {}

// ReachCluster implements drivers.Driver: there is no host.
func (d *Driver) ReachCluster([]netip.Prefix) {}

// ServiceCounts implements drivers.Driver: nothing is exchanged in memory.
func (d *Driver) ServiceCounts(context.Context) ([]drivers.ServiceCount, error) { return nil, nil }

// SetSpeaker implements drivers.Driver.
func (d *Driver) SetSpeaker(c *bgp.Config) { d.with(func() { d.speaker = c }) }

// InspectBGP implements drivers.Driver: a speaker whose neighbours do not answer.
func (d *Driver) InspectBGP(context.Context) (bgp.State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.speaker == nil {
		return bgp.State{}, errs.New(errs.Unavailable, "no BGP speaker is configured for this host")
	}
	var p bgp.State
	for _, n := range d.speaker.Neighbors {
		p.Peers = append(p.Peers, bgp.Peer{
			Config: bgp.PeerConfig{NeighborAddress: n.Addr.String(), PeerAs: n.AS, LocalAs: d.speaker.AS},
			State:  bgp.PeerState{SessionState: "active", AdminState: "ADMIN_STATE_UP"},
		})
	}
	return p, nil
}

// Complete implements drivers.Driver.
func (d *Driver) Complete() { d.with(func() { d.complete = true }) }

// Attach implements drivers.Driver.
func (d *Driver) Attach(_ context.Context, a drivers.Attachment, _ ofnet.Encap, _ uint16) (drivers.Port, error) {
	var err error
	d.with(func() {
		if err = d.fail; err != nil {
			return
		}
		if have, ok := d.attached[a.EndpointID]; ok {
			a = have
			return
		}
		d.next++
		a.Port = drivers.Port{Name: fmt.Sprintf("vport%d", d.next), OVSName: fmt.Sprintf("vvport%d", d.next), MTU: 1450}
		d.attached[a.EndpointID] = a
	})
	return a.Port, err
}

// Detach implements drivers.Driver.
func (d *Driver) Detach(_ context.Context, endpointID string) error {
	var err error
	d.with(func() {
		if err = d.stuck; err == nil {
			delete(d.attached, endpointID)
		}
	})
	return err
}

// Attachments implements drivers.Driver.
func (d *Driver) Attachments() []drivers.Attachment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.attached))
}

// Realised implements drivers.Driver.
func (d *Driver) Realised(ctx context.Context, endpointID string) error {
	for {
		d.mu.Lock()
		_, declared := d.endpoints[endpointID]
		_, attached := d.attached[endpointID]
		changed := d.changed
		d.mu.Unlock()
		if declared && attached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errs.New(errs.Timeout, "endpoint %s: declared %t, attached %t: %w", endpointID, declared, attached, ctx.Err())
		}
	}
}

// Ready implements drivers.Driver.
func (d *Driver) Ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.global.FwdMode == "" {
		return errs.New(errs.Unavailable, "waiting for the global settings")
	}
	return d.unwell
}

// Flushed implements drivers.Driver.
func (d *Driver) Flushed(ctx context.Context) error {
	for {
		d.mu.Lock()
		changed := d.changed
		d.mu.Unlock()
		err := d.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// Summary implements drivers.Driver: an endpoint stands for a flow.
func (d *Driver) Summary() drivers.Summary {
	d.mu.Lock()
	defer d.mu.Unlock()
	return drivers.Summary{Flows: len(d.endpoints)}
}

// Inspect implements drivers.Driver.
func (d *Driver) Inspect() map[string]any {
	return map[string]any{"vlan": struct{}{}, "vxlan": d.State()}
}

// State is everything declared, as values that can be compared.
type State struct {
	Global           drivers.Global
	Networks         map[string]drivers.Network
	Endpoints        map[string]drivers.Endpoint
	Rules            map[string]drivers.Rule
	Services         map[string]drivers.Service
	PolicyRuleSets   map[string]drivers.PolicyRuleSet
	EndpointPolicies map[string]drivers.EndpointPolicy
	Speaker          *bgp.Config
	Complete         bool
}

// State returns a copy of what has been declared.
func (d *Driver) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return State{Global: d.global, Networks: maps.Clone(d.networks), Endpoints: maps.Clone(d.endpoints), Rules: maps.Clone(d.rules), Services: maps.Clone(d.services), PolicyRuleSets: maps.Clone(d.sets), EndpointPolicies: maps.Clone(d.guards), Speaker: d.speaker, Complete: d.complete}
}
