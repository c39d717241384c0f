package daemon

import (
	"context"
	"time"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/retry"
)

const (
	healthEvery  = 5 * time.Second // how often the store is asked whether it is there
	healthWithin = 2 * time.Second // how long it may take to say so
	patience     = 3 * time.Second // after which a store that is opening is mentioned
)

// openStore opens the store, however long it takes.
func (d *Daemon) openStore(ctx context.Context) (objdb.Store, error) {
	pauses := retry.New(500*time.Millisecond, 5*time.Second)
	for {
		late := time.AfterFunc(patience, func() {
			d.setStoreErr("it is still starting, or waiting for the other members")
		})
		store, err := d.cfg.OpenStore(ctx)
		late.Stop()
		switch {
		case err == nil:
			d.mu.Lock()
			d.store = store
			d.mu.Unlock()
			d.state.change(func(v *view) { v.waiting = "" })
			return store, nil
		case ctx.Err() != nil || errs.Is(err, errs.Invalid):
			return nil, err
		}
		d.setStoreErr(err.Error())
		if !pauses.Wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// watchHealth asks the store from time to time, for one log line when it goes and one
// when it comes back. Requests and elections find out by themselves.
func (d *Daemon) watchHealth(ctx context.Context, store objdb.Store) {
	for {
		d.checkStore(ctx, store)
		if !retry.Pause(ctx, healthEvery) {
			return
		}
	}
}

// checkStore asks the store now.
func (d *Daemon) checkStore(ctx context.Context, store objdb.Store) {
	ask, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	err := store.Health(ask)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.setStoreErr(err.Error())
	default:
		d.setStoreErr("")
	}
}

// setStoreErr notes the store's state and logs a change of it.
func (d *Daemon) setStoreErr(text string) {
	d.mu.Lock()
	old := d.storeErr
	d.storeErr = text
	d.mu.Unlock()
	switch {
	case (old == "") == (text == "") && (old == "" || old == text):
	case text == "":
		d.log.Info("the store answers")
	case old == "" || old == "not connected yet":
		d.log.WithField("reason", text).Warn("the store is unavailable; nothing can be changed until it answers again")
	}
}

// storeState returns the store, nil if it has not been opened, and what is wrong.
func (d *Daemon) storeState() (objdb.Store, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.store, d.storeErr
}
