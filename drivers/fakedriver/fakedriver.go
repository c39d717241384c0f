// Package fakedriver is a drivers.Driver in memory, for tests of what uses one. It
// moves no packets and makes no interfaces, but keeps the driver's promises about
// declarations and attachments.
package fakedriver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/signal"
)

// Driver implements drivers.Driver, drivers.Ports and drivers.Inspector. The zero value
// is not ready; use New.
type Driver struct {
	mu       sync.Mutex
	objects  map[drivers.Key]drivers.Object
	synced   map[drivers.Source]bool
	attached map[string]drivers.Attachment
	next     int
	changed  signal.Signal
	fail     error // of Attach
	stuck    error // of Detach
	unwell   error
	tracked  []drivers.Connection
	withheld map[string]uint64
	netns    func(path string) bool // whether there is such a namespace; nil: always
}

var (
	_ drivers.Driver    = (*Driver)(nil)
	_ drivers.Ports     = (*Driver)(nil)
	_ drivers.Inspector = (*Driver)(nil)

	_ drivers.Connections = (*Driver)(nil)
)

// New makes a driver that has nothing.
func New() *Driver {
	return &Driver{
		objects: map[drivers.Key]drivers.Object{}, synced: map[drivers.Source]bool{},
		attached: map[string]drivers.Attachment{},
	}
}

// FailAttach makes Attach fail with err until it is called with nil.
func (d *Driver) FailAttach(err error) { d.with(func() { d.fail = err }) }

// Netns has Attach fail for network namespaces that do not exist.
func (d *Driver) Netns(exists func(path string) bool) { d.with(func() { d.netns = exists }) }

// FailDetach makes Detach fail with err until it is called with nil.
func (d *Driver) FailDetach(err error) { d.with(func() { d.stuck = err }) }

func (d *Driver) with(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	d.changed.Broadcast()
}

// Unwell makes Ready fail with err until it is called with nil.
func (d *Driver) Unwell(err error) { d.with(func() { d.unwell = err }) }

// Track replaces what Connections and Withheld tell.
func (d *Driver) Track(withheld map[string]uint64, all ...drivers.Connection) {
	d.with(func() { d.tracked, d.withheld = all, withheld })
}

// Connections implements drivers.Connections.
func (d *Driver) Connections(_ context.Context, yield func(*drivers.Connection)) error {
	d.mu.Lock()
	all := slices.Clone(d.tracked)
	d.mu.Unlock()
	for i := range all {
		yield(&all[i])
	}
	return nil
}

// Withheld implements drivers.Connections.
func (d *Driver) Withheld(context.Context) (map[string]uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.withheld), nil
}

// Run waits for ctx.
func (d *Driver) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Apply implements drivers.Driver.
func (d *Driver) Apply(o drivers.Object) { d.with(func() { d.objects[o.Key()] = o }) }

// Delete implements drivers.Driver.
func (d *Driver) Delete(k drivers.Kind, id string) {
	d.with(func() { delete(d.objects, drivers.Key{Kind: k, ID: id}) })
}

// Synced implements drivers.Driver: there is no predecessor, it is only noted.
func (d *Driver) Synced(s drivers.Source) { d.with(func() { d.synced[s] = true }) }

// RuleHits implements drivers.Inspector: nothing is judged in memory.
func (d *Driver) RuleHits(context.Context) (map[string]drivers.Hits, error) { return nil, nil }

// ServiceCounts implements drivers.Inspector: nothing is exchanged in memory.
func (d *Driver) ServiceCounts(context.Context) ([]drivers.ServiceCount, error) { return nil, nil }

// InspectBGP implements drivers.Inspector: no session ever comes up.
func (d *Driver) InspectBGP(context.Context) (bgp.State, error) {
	speaker := d.State().Speaker
	if speaker == nil {
		return bgp.State{}, errs.New(errs.Unavailable, "no BGP speaker is configured for this host")
	}
	var p bgp.State
	for _, n := range speaker.Neighbors {
		p.Peers = append(p.Peers, bgp.Peer{
			Config: bgp.PeerConfig{NeighborAddress: n.Addr.String(), PeerAs: n.AS, LocalAs: speaker.AS},
			State:  bgp.PeerState{SessionState: "active", AdminState: "ADMIN_STATE_UP"},
		})
	}
	return p, nil
}

// Attach implements drivers.Ports.
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
		if err = d.refuse(a); err != nil {
			return
		}
		d.next++
		a.Port = drivers.Port{Name: fmt.Sprintf("vport%d", d.next), OVSName: fmt.Sprintf("vvport%d", d.next), MTU: 1450}
		d.attached[a.EndpointID] = a
	})
	return a.Port, err
}

// refuse says why a container cannot have an interface: there is no such namespace, or
// it has one of that name. The caller holds mu.
func (d *Driver) refuse(a drivers.Attachment) error {
	if a.Netns == "" {
		return nil
	}
	if d.netns != nil && !d.netns(a.Netns) {
		return errs.New(errs.NotFound, "network namespace %s does not exist", a.Netns)
	}
	for _, o := range d.attached {
		if o.Netns == a.Netns && o.IfName == a.IfName {
			return errs.New(errs.Exists, "the container already has an interface %s", a.IfName)
		}
	}
	return nil
}

// LinkExists reports whether a container would have an interface.
func (d *Driver) LinkExists(netns, name string) bool {
	return slices.ContainsFunc(d.Attachments(), func(a drivers.Attachment) bool { return a.Netns == netns && a.IfName == name })
}

// Flows stands for what the switch has for an encapsulation: a line for each network, and
// for each endpoint and endpoint policy in one.
func (d *Driver) Flows(encap ofnet.Encap) string {
	st := d.State()
	var lines []string
	for id, n := range st.Networks {
		if n.Encap == encap {
			lines = append(lines, "network "+id)
		}
	}
	for id, e := range st.Endpoints {
		if e.Network.Encap != encap {
			continue
		}
		lines = append(lines, "endpoint "+id)
		if _, ok := st.EndpointPolicies[id]; ok {
			lines = append(lines, "policy of "+id)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Detach implements drivers.Ports.
func (d *Driver) Detach(_ context.Context, endpointID string) error {
	var err error
	d.with(func() {
		if err = d.stuck; err == nil {
			delete(d.attached, endpointID)
		}
	})
	return err
}

// Attachments implements drivers.Ports.
func (d *Driver) Attachments() []drivers.Attachment {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.attached))
}

// Realised implements drivers.Ports.
func (d *Driver) Realised(ctx context.Context, endpointID string) error {
	for {
		d.mu.Lock()
		_, declared := d.objects[drivers.Key{Kind: drivers.KindEndpoint, ID: endpointID}]
		_, attached := d.attached[endpointID]
		changed := d.changed.Next()
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

// Ready implements drivers.Inspector.
func (d *Driver) Ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.objects[drivers.Key{Kind: drivers.KindGlobal}]; !known {
		return errs.New(errs.Unavailable, "waiting for the global settings")
	}
	return d.unwell
}

// Flushed implements drivers.Inspector.
func (d *Driver) Flushed(ctx context.Context) error {
	for {
		d.mu.Lock()
		changed := d.changed.Next()
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

// Summary implements drivers.Inspector: an endpoint stands for a flow.
func (d *Driver) Summary() drivers.Summary {
	d.mu.Lock()
	defer d.mu.Unlock()
	return drivers.Summary{Flows: len(ofKind[drivers.Endpoint](d.objects, drivers.KindEndpoint))}
}

// Inspect implements drivers.Inspector.
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
	RuleSets         map[string]drivers.PolicyRuleSet
	PolicyPeers      map[string]drivers.PolicyPeer
	EndpointPolicies map[string]drivers.EndpointPolicy
	Speaker          *drivers.Speaker // nil: none
	Synced           map[drivers.Source]bool
}

// State returns a copy of what has been declared.
func (d *Driver) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := State{
		Global:           ofKind[drivers.Global](d.objects, drivers.KindGlobal)[""],
		Networks:         ofKind[drivers.Network](d.objects, drivers.KindNetwork),
		Endpoints:        ofKind[drivers.Endpoint](d.objects, drivers.KindEndpoint),
		Rules:            ofKind[drivers.Rule](d.objects, drivers.KindRule),
		Services:         ofKind[drivers.Service](d.objects, drivers.KindService),
		RuleSets:         ofKind[drivers.PolicyRuleSet](d.objects, drivers.KindPolicyRuleSet),
		PolicyPeers:      ofKind[drivers.PolicyPeer](d.objects, drivers.KindPolicyPeer),
		EndpointPolicies: ofKind[drivers.EndpointPolicy](d.objects, drivers.KindEndpointPolicy),
		Synced:           maps.Clone(d.synced),
	}
	if s, ok := d.objects[drivers.Key{Kind: drivers.KindSpeaker}].(drivers.Speaker); ok {
		st.Speaker = &s
	}
	return st
}

// ofKind lists the objects of a kind by id.
func ofKind[T drivers.Object](objects map[drivers.Key]drivers.Object, k drivers.Kind) map[string]T {
	out := map[string]T{}
	for key, o := range objects {
		if v, ok := o.(T); ok && key.Kind == k {
			out[key.ID] = v
		}
	}
	return out
}
