package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/ovsd/compiler"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/signal"
)

// atOnce is how many rows are computed while the lock is held, as in drivers/ovsd.
const atOnce = 256

// bridges is a driver without Open vSwitch: the compiler and both bridges' flows are those of
// drivers/ovsd, what is below them counts. Every endpoint of this host has its port at once.
type bridges struct {
	kick     chan struct{}
	switches map[ofnet.Encap]*ofnet.Switch
	// messages and bytes are what both switches were sent.
	messages, bytes atomic.Int64

	mu       sync.Mutex
	compiler *compiler.Compiler
	ports    map[string]compiler.PortNumber
	newPorts bool // the compiler does not know them yet
	synced   bool // the store has declared everything, but the bridges do not know it yet
	passing  bool
	changed  signal.Signal
}

func newBridges(label string, vtep netip.Addr, policies bool, log logrus.FieldLogger) *bridges {
	b := &bridges{
		kick: make(chan struct{}, 1), switches: map[ofnet.Encap]*ofnet.Switch{}, ports: map[string]compiler.PortNumber{},
		compiler: compiler.New(compiler.Config{
			HostLabel: label, VTEP: vtep, CtrlIP: vtep, TunnelPort: 65000, FlowLog: ofnet.LogPoliced, EndpointPolicies: policies,
		}, compiler.Inputs{}),
	}
	for _, encap := range []ofnet.Encap{ofnet.VLAN, ofnet.VXLAN} {
		b.compiler.SetBridge(encap, compiler.BridgeState{Round: 1, Kernel: true})
		b.switches[encap] = ofnet.NewSwitch(ofnet.SwitchConfig{
			Name: encap.String(), Log: log,
			Dial: func(context.Context, string) (ofnet.Channel, error) {
				return &channel{messages: &b.messages, bytes: &b.bytes}, nil
			},
		})
	}
	b.compiler.SetTunnel(true)
	return b
}

// Run computes and sends until ctx ends.
func (b *bridges) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range b.switches {
		g.Go(func() error { return s.Run(ctx) })
	}
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-b.kick:
				b.pass()
			}
		}
	})
	return g.Wait()
}

// pass computes everything that is marked, and hands it to the bridges.
func (b *bridges) pass() {
	b.mu.Lock()
	b.passing = true
	synced := b.synced
	b.synced = false
	if b.newPorts {
		b.newPorts = false
		b.compiler.SetPorts(b.ports)
	}
	b.mu.Unlock()
	for done := false; !done; {
		b.mu.Lock()
		var out []compiler.Output
		out, done = b.compiler.Step(atOnce)
		b.mu.Unlock()
		for _, o := range out {
			if o.Owner == "" {
				continue // for what is told besides the bridges
			}
			for encap, s := range b.switches {
				s.Set(o.Owner, *o.In(encap))
			}
		}
	}
	if synced {
		for _, s := range b.switches {
			s.InitialSyncDone()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passing = false
	if b.busy() {
		b.wake()
	}
	b.changed.Broadcast()
}

// busy reports whether changes are still to be computed. The caller holds mu.
func (b *bridges) busy() bool {
	return b.passing || b.newPorts || b.synced || b.compiler.Dirty()
}

func (b *bridges) wake() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

func (b *bridges) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	if b.busy() {
		b.wake()
	}
}

// Apply implements drivers.Driver.
func (b *bridges) Apply(o drivers.Object) {
	b.change(func() {
		if e, ok := o.(drivers.Endpoint); ok && e.Local && b.ports[e.ID].OpenFlow == 0 {
			n := len(b.ports) + 1
			b.ports[e.ID], b.newPorts = compiler.PortNumber{OpenFlow: uint32(n), Name: n}, true
		}
		b.compiler.Apply(o)
	})
}

// Delete implements drivers.Driver. The port of an endpoint stays, as until Detach.
func (b *bridges) Delete(k drivers.Kind, id string) { b.change(func() { b.compiler.Delete(k, id) }) }

// Synced implements drivers.Driver.
func (b *bridges) Synced(drivers.Source) {
	b.change(func() {
		b.compiler.SetSynced()
		b.synced = true
	})
}

// Attachments is what the agent needs of drivers.Ports: no container says more than its
// record here.
func (b *bridges) Attachments() []drivers.Attachment { return nil }

// Ready implements drivers.Inspector.
func (b *bridges) Ready() error {
	b.mu.Lock()
	busy := b.busy()
	b.mu.Unlock()
	if busy {
		return fmt.Errorf("changes are still to be compiled")
	}
	for _, s := range b.switches {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// Flushed waits until everything that has been declared was sent.
func (b *bridges) Flushed(ctx context.Context) error {
	for {
		b.mu.Lock()
		busy, changed := b.busy(), b.changed.Next()
		b.mu.Unlock()
		if !busy {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, s := range b.switches {
		if err := s.Flushed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Summary implements drivers.Inspector.
func (b *bridges) Summary() drivers.Summary {
	var sum drivers.Summary
	for _, s := range b.switches {
		st := s.Status()
		sum.Flows += st.Desired
		sum.Digest ^= st.Digest
	}
	return sum
}
