// Package reconcile says how things outside the store follow the objects in it: docker
// networks, the app profiles of an ACI fabric.
//
// A Loop keeps such things equal to what the committed objects ask for, and retries until
// they are. A request that changes an object waits until the loop has tried once, so that
// users see an error at once; what happens to the object then is decided here, for all
// loops alike: a new object can be removed again, any other change stays.
package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/contiv/netplugin/utils/errs"
)

// undoWithin bounds how long removing a new object again may take.
const undoWithin = 5 * time.Second

// Op is what happens to an object.
type Op int

// The operations.
const (
	Create Op = iota
	Update
	Delete
)

// Change is what a request is about to do.
type Change struct {
	Type string // of the object, "network"
	Key  string
	Op   Op
}

// Loop keeps something outside the store as the objects in it say.
type Loop interface {
	// Run does so until ctx ends, in which it must not fail.
	Run(ctx context.Context)
	// Begin is called before a change is committed. An error refuses the change. The
	// result is nil if the change does not concern the loop.
	Begin(ctx context.Context, c Change) (Pending, error)
}

// Pending is a change on its way. Exactly one of its methods is called.
type Pending interface {
	// Settle is called after the change has been committed. It waits until the loop has
	// tried once to follow it, and returns why that failed. undo asks for the new object
	// to be removed again.
	Settle(ctx context.Context) (undo bool, err error)
	// Cancel is called when the change has not been committed.
	Cancel()
}

// Do carries out a change with all loops that it concerns: commit writes it to the store,
// undo deletes the object again. Loops begin in the given order and settle in the other.
func Do(ctx context.Context, loops []Loop, c Change, commit func(context.Context) error, undo func(context.Context) error) error {
	var all []Pending
	cancel := func() {
		for _, p := range all {
			p.Cancel()
		}
	}
	for _, l := range loops {
		p, err := l.Begin(ctx, c)
		if err != nil {
			cancel()
			return err
		}
		if p != nil {
			all = append(all, p)
		}
	}
	if err := commit(ctx); err != nil {
		cancel()
		return err
	}
	for _, p := range slices.Backward(all) {
		again, err := p.Settle(ctx)
		if err == nil {
			continue
		}
		if !again {
			return err
		}
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer done()
		if e := undo(ctx); e != nil {
			return errs.New(errs.Other, "%w; %s %s is kept, it could not be taken back: %w", err, c.Type, c.Key, e)
		}
		return err
	}
	return nil
}
