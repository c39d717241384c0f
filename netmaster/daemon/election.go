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
		d.log.WithError(err).Warn("could not look for a lock of our previous life")
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
		d.log.WithError(err).Error("cannot lead")
		d.seat.change(func(v *view) { v.waiting = err.Error() })
		// Another one may be luckier; do not be the first to try again.
		pauses.Wait(ctx)
		d.seat.change(func(v *view) { v.waiting = "" })
	}
}

// lead is one tenure. It returns an error if there was nothing to lead with.
func (d *Daemon) lead(ctx context.Context, store objdb.Store, lead objdb.Leadership, me presence) error {
	tenure, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-lead.Lost():
			cancel()
		case <-tenure.Done():
		}
	})
	began := time.Now()
	d.log.WithField("tenure", lead.Fence().Revision).Info("leading: loading the model")
	d.seat.change(func(v *view) {
		v.leading, v.leader, v.waiting = true, d.cfg.Address, "the model is being loaded"
	})
	me.setRole(objdb.RoleLeader)
	controller, err := d.newController(tenure, store, lead)
	if err == nil && tenure.Err() == nil {
		d.metrics.tenures.Inc()
		d.log.WithField("loaded_in", time.Since(began).Round(time.Microsecond).String()).Info("leading: serving")
		d.seat.change(func(v *view) { v.controller, v.waiting = controller, "" })
		<-tenure.Done()
	}
	lost := false
	select {
	case <-lead.Lost():
		lost = true
	default:
	}
	// From here on requests go elsewhere, or wait for an elsewhere to be known.
	d.seat.change(func(v *view) {
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
		d.log.WithError(e).Warn("left the lock to its lease")
	}
	switch {
	case lost:
		d.log.Warn("following: the lock was lost")
		return nil
	case err != nil:
		return fmt.Errorf("load the model: %w", err)
	}
	d.log.Info("following: the lock was given up")
	return nil
}

// newController shields the daemon from a controller that panics over what it finds in
// the store.
func (d *Daemon) newController(ctx context.Context, store objdb.Store, lead objdb.Leadership) (c Controller, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.WithField("stack", string(debug.Stack())).Error("panic while loading the model")
			err = errs.New(errs.Internal, "panic: %v", p)
		}
	}()
	return d.cfg.NewController(ctx, store, lead)
}
