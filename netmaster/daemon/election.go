package daemon

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

// elect campaigns, leads, and campaigns again until ctx ends.
func (d *Daemon) elect(ctx context.Context, store objdb.Store, me presence) {
	// We listen on our address, so a lock that bears it is from our previous life.
	if err := objdb.BreakLock(ctx, store, state.LeaderKey, d.cfg.Address); err != nil && ctx.Err() == nil {
		d.log.WithError(err).Warn("cannot check for a leader lock left by the previous run of this process")
	}
	pauses := retry.New(time.Second, 10*time.Second)
	for ctx.Err() == nil {
		lead, err := objdb.Campaign(ctx, store, state.LeaderKey, d.cfg.Address, d.cfg.Lease)
		if err == nil {
			err = d.lead(ctx, store, lead, me)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pauses.Reset()
			continue
		}
		d.log.WithError(err).Error("cannot become leader; retrying")
		d.state.change(func(v *view) { v.waiting = err.Error() })
		// Another one may be luckier; do not be the first to try again.
		pauses.Wait(ctx)
		d.state.change(func(v *view) { v.waiting = "" })
	}
}

// lead is one term. It returns an error if there was nothing to lead with.
func (d *Daemon) lead(ctx context.Context, store objdb.Store, lead objdb.Leadership, me presence) error {
	term, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-lead.Lost():
			cancel()
		case <-term.Done():
		}
	})
	began := time.Now()
	d.log.WithField("term", lead.Fence().Revision).Info("elected leader, loading state from the store")
	d.state.change(func(v *view) {
		v.leading, v.leader, v.waiting = true, d.cfg.Address, "the model is being loaded"
	})
	me.setRole(objdb.RoleLeader)
	controller, err := d.newController(term, store, lead)
	if err == nil && term.Err() == nil {
		d.metrics.terms.Inc()
		d.log.WithField("loaded_in", time.Since(began).Round(time.Microsecond).String()).Info("leader is serving requests")
		d.state.change(func(v *view) { v.controller, v.waiting = controller, "" })
		<-term.Done()
	}
	lost := false
	select {
	case <-lead.Lost():
		lost = true
	default:
	}
	// From here on requests go elsewhere, or wait for an elsewhere to be known.
	d.state.change(func(v *view) {
		v.leading, v.controller = false, nil
		if v.leader == d.cfg.Address {
			v.leader = ""
		}
	})
	me.setRole(objdb.RoleFollower)
	cancel()
	if controller != nil {
		watching.Go(controller.Wait)
	}
	bye, done := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer done()
	if e := lead.Resign(bye); e != nil && !lost {
		d.log.WithError(e).Warn("cannot release the leader lock; it expires with its lease")
	}
	switch {
	case lost:
		d.log.Warn("lost the leader lock, now a follower")
		return nil
	case err != nil:
		return fmt.Errorf("load the model: %w", err)
	}
	d.log.Info("released the leader lock, now a follower")
	return nil
}

// newController shields the daemon from a controller that panics over what it finds in
// the store.
func (d *Daemon) newController(ctx context.Context, store objdb.Store, lead objdb.Leadership) (c Controller, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.WithField("stack", string(debug.Stack())).Error("panic while loading state from the store")
			err = errs.New(errs.Internal, "panic: %v", p)
		}
	}()
	return d.cfg.NewController(ctx, store, lead)
}
