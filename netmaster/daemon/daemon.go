package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/events"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/tlsport"
)

// Daemon is one netmaster.
type Daemon struct {
	cfg     Config
	log     logrus.FieldLogger
	address netip.AddrPort
	state   *leaderState
	metrics *metrics
	handler http.Handler
	masters masters
	events  *events.Hub

	forwarder *forwarder
	gate      *gate
	plain     plainClients

	mu       sync.Mutex
	store    objdb.Store // nil until it has been opened
	storeErr string      // why the store does not answer; empty: it does
}

// New makes a Daemon; Run runs it.
func New(cfg Config) (*Daemon, error) {
	address, err := netip.ParseAddrPort(cfg.Address)
	if err != nil || address.Addr().IsUnspecified() || address.Port() == 0 {
		return nil, errs.New(errs.Invalid, "internal address %q is not ip:port of this host", cfg.Address)
	}
	if cfg.Lease == 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.Security.Mode == "" {
		cfg.Security.Mode = tlsport.Off
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	if cfg.Members == nil {
		cfg.Members = cluster.New(address.Addr().String())
	}
	d := &Daemon{cfg: cfg, log: cfg.Log, address: address, state: newLeaderState(), events: events.NewHub(events.Config{}), gate: newGate(), storeErr: "not connected yet"}
	if d.metrics, err = newMetrics(cfg.Metrics, cfg.Version, d.state, d.events); err != nil {
		return nil, err
	}
	if err := cfg.Metrics.Register(cfg.Members); err != nil {
		return nil, fmt.Errorf("register metrics of the cluster: %w", err)
	}
	d.forwarder = newForwarder(cfg.Address, d.dialer(time.Second, 15*time.Second))
	d.handler = d.routes()
	return d, nil
}

// Run serves until ctx ends; then it finishes the requests it has, gives up the lead and
// returns nil, within a second. It returns an error when it cannot go on: a listener
// fails, or the store's options are wrong.
func (d *Daemon) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	servers := d.startServers(&wg)
	// What is done with the store outlasts ctx: requests that are being served when it
	// ends are still a leader's.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	lead, stopLeading := context.WithCancel(work)
	defer stopLeading()
	workErr, led := make(chan error, 1), make(chan struct{})
	wg.Go(func() { workErr <- d.work(work, lead, led) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-servers.failed:
	case err = <-workErr:
	}
	// First what the other netmasters need of our store, and the requests being served;
	// then the lead; then, when the others know who leads now and send nothing here any
	// more, the listeners.
	d.finishRequests(&wg)
	stopLeading()
	d.within(leaveWithin, func(ctx context.Context) {
		select {
		case <-led:
		case <-ctx.Done():
		}
	})
	servers.close(d)
	stopWork()
	wg.Wait()
	if err == nil && len(workErr) > 0 {
		err = <-workErr
	}
	return err
}

// finishRequests drains the embedded store and waits, for a while, for the requests that are
// being served; others are refused.
func (d *Daemon) finishRequests(wg *sync.WaitGroup) {
	d.state.change(func(v *view) { v.stopping = true })
	if store, _ := d.storeState(); store != nil {
		if s, ok := store.(objdb.Drainer); ok {
			wg.Go(s.Drain)
		}
	}
	d.within(finishWithin, func(ctx context.Context) {
		if !d.gate.close(ctx) {
			d.log.Warn("shutting down: aborted requests that were still being served")
		}
	})
}

// within runs f with a context that ends after t.
func (d *Daemon) within(t time.Duration, f func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), t)
	defer cancel()
	f(ctx)
}

// work is everything that needs the store; leading ends with lead, which is part of
// ctx, and led is closed when it has.
func (d *Daemon) work(ctx, lead context.Context, led chan<- struct{}) error {
	store, err := d.openStore(lead)
	if err != nil {
		close(led)
		if lead.Err() != nil {
			return nil
		}
		return err
	}
	defer func() {
		if err := store.Close(); err != nil {
			d.log.WithError(err).Warn("cannot close the store cleanly")
		}
	}()
	// Everything below ends with ctx; the store is closed after.
	var wg sync.WaitGroup
	defer wg.Wait()
	me := d.register(ctx, store)
	wg.Go(func() { d.watchHealth(ctx, store) })
	if d.cfg.WithStore != nil {
		wg.Go(func() { d.cfg.WithStore(lead, store) })
	}
	wg.Go(func() { d.watchLeader(ctx, store) })
	wg.Go(func() { d.watchOver(lead, store) })
	wg.Go(func() { d.masters.watch(ctx, store, d.cfg.Members) })
	wg.Go(func() { d.cfg.Members.Follow(ctx, store) })
	wg.Go(func() { d.events.Run(lead, store) }) // streams end before the listeners do
	wg.Go(func() {
		<-lead.Done()
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
		defer cancel()
		me.close(bye, d.log)
	})
	d.elect(lead, store, me)
	close(led)
	<-ctx.Done()
	return nil
}

// watchLeader follows the lock's value.
func (d *Daemon) watchLeader(ctx context.Context, store objdb.Store) {
	for b := range store.Watch(ctx, state.LeaderKey) {
		leader, term, known := "", int64(0), b.Snapshot
		for _, ev := range b.Events {
			if ev.KV.Key == state.LeaderKey {
				leader, term, known = string(ev.KV.Value), ev.KV.CreateRevision, true
			}
		}
		if known {
			d.state.change(func(v *view) { v.leader, v.term = leader, term })
			d.log.WithField("leader", leader).Debug("the lock changed hands")
		}
	}
}
