package main

import (
	"context"
	"net/netip"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/netplugin/agent"
	"github.com/contiv/netplugin/netplugin/cluster"
	"github.com/contiv/netplugin/netplugin/flowlog"
	"github.com/contiv/netplugin/netplugin/nameserver"
	"github.com/contiv/netplugin/objdb"
)

// full is an agent with everything between the store and the OpenFlow channel.
type full struct {
	seen, sent history
	bridges    *bridges
	agent      *agent.Agent
}

// observed tells the flow log what is declared, as cmd/netplugin does.
type observed struct {
	*bridges
	log *flowlog.Log
}

// Apply implements drivers.Driver.
func (o observed) Apply(obj drivers.Object) {
	o.log.Declare(obj)
	o.bridges.Apply(obj)
}

// Delete implements drivers.Driver.
func (o observed) Delete(k drivers.Kind, id string) {
	o.log.Withdraw(k, id)
	o.bridges.Delete(k, id)
}

func newFull(label string, vtep netip.Addr, store objdb.Store, master *cluster.Master, log logrus.FieldLogger) *full {
	f := &full{bridges: newBridges(label, vtep, false, log)}
	names, connections := nameserver.NewNames(log), flowlog.New(flowlog.Config{Host: label, Log: log})
	f.agent = agent.New(agent.Config{
		HostLabel: label, VTEP: vtep, CtrlIP: vtep, Store: store, Master: master, Driver: observed{f.bridges, connections}, Log: log,
		OnBatch: func(b objdb.Batch) {
			f.seen.reach(b.Revision)
			names.Apply(b)
			connections.Apply(b)
		},
	})
	return f
}

// run works until ctx ends.
func (f *full) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.bridges.Run(ctx) })
	g.Go(func() error { return f.agent.Run(ctx) })
	g.Go(func() error {
		for ctx.Err() == nil {
			revision, _, changed := f.agent.Progress()
			if f.agent.Ready() == nil && f.bridges.Flushed(ctx) == nil {
				f.sent.reach(revision)
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	})
	return g.Wait()
}
