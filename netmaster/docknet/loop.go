package docknet

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// Networks makes the docker networks of a cluster: Hosts, Mapped or Shared.
type Networks interface {
	// Run manages them until ctx ends; it returns immediately if others do.
	Run(ctx context.Context)
	// Settle waits until the creation of a docker network was attempted.
	Settle(ctx context.Context, p state.NetworkRef) error
	// Release removes the docker network of an object that is about to be deleted.
	Release(ctx context.Context, p state.NetworkRef) error
	// Keep undoes Release: the object was not deleted.
	Keep(p state.NetworkRef)
}

// Places says which docker network belongs to a network or group of the model, by its type and
// key, if one does.
type Places interface {
	DockerNetwork(typ, key string) (state.NetworkRef, bool)
}

// Loop keeps docker networks equal to the networks and groups of a source. A new object
// whose docker network cannot be created is removed again; an object whose docker network
// is in use is not deleted.
type Loop struct {
	Networks
	Source Places
}

// Begin implements reconcile.Loop.
func (l Loop) Begin(ctx context.Context, c reconcile.Change) (reconcile.Pending, error) {
	if c.Type != contivmodel.NetworkType && c.Type != contivmodel.EndpointGroupType || c.Op == reconcile.Update {
		return nil, nil
	}
	if c.Op == reconcile.Create {
		return creation{l, c}, nil
	}
	p, ok := l.Source.DockerNetwork(c.Type, c.Key)
	if !ok {
		return nil, nil
	}
	if err := l.Release(ctx, p); err != nil && !errs.Is(err, errs.Timeout) {
		return nil, errs.Wrap(errs.InUse, err)
	}
	return deletion{l, p}, nil
}

// creation is an object that is being created.
type creation struct {
	Loop
	change reconcile.Change
}

// Settle waits for the docker network. If there is no Engine yet, it is created when the
// Engine answers.
func (c creation) Settle(ctx context.Context) (undo bool, err error) {
	p, ok := c.Source.DockerNetwork(c.change.Type, c.change.Key)
	if !ok {
		return false, nil
	}
	err = c.Networks.Settle(ctx, p)
	if err == nil || errs.Is(err, errs.Timeout) {
		return false, nil
	}
	return true, errs.Wrap(errs.Other, err)
}

// Cancel does nothing: there is no docker network yet.
func (creation) Cancel() {}

// deletion is an object that is being deleted; its docker network is gone.
type deletion struct {
	Loop
	place state.NetworkRef
}

// Settle has nothing to wait for.
func (deletion) Settle(context.Context) (undo bool, err error) { return false, nil }

// Cancel has the docker network created again.
func (d deletion) Cancel() { d.Keep(d.place) }
