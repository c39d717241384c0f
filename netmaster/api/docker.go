package api

import (
	"context"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/docknet"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// Docker says how a cluster has docker networks. The zero value: not at all.
type Docker struct {
	Driver string         // the name Engines know the plugin by
	Shared docknet.Engine // the Engine through which all share networks; nil: every agent makes its own
}

// docker is who makes docker networks.
type docker interface {
	// Settle waits until the docker network of a place has been tried once.
	Settle(ctx context.Context, p state.NetworkRef) error
	// Release removes the docker network of a place that is about to go.
	Release(ctx context.Context, p state.NetworkRef) error
}

// newDocker returns who makes the docker networks of a cluster; nil for nobody.
func newDocker(ctx context.Context, cfg Config, e *intent.Engine, store objdb.Store, fence objdb.Cmp) docker {
	switch {
	case cfg.ClusterMode == "swarm-mode":
		return docknet.Mapped{Store: store}
	case cfg.ClusterMode != "docker":
		return nil
	case cfg.Docker.Shared == nil:
		return docknet.Hosts{Store: store}
	}
	s := docknet.New(docknet.Config{Log: cfg.Log, Store: store, Fence: fence, Engine: cfg.Docker.Shared, Driver: cfg.Docker.Driver}, e)
	go s.Run(ctx)
	return s
}

// inDocker is a collection whose objects have docker networks: a change waits until the
// docker network has been tried once. A new object whose docker network cannot be made is
// taken back; one whose docker network is in use is not deleted.
type inDocker struct {
	intent.Collection
	engine *intent.Engine
	docker docker
}

// withDocker wraps the collections whose objects have docker networks.
func withDocker(c intent.Collection, e *intent.Engine, d docker) intent.Collection {
	if d == nil {
		return c
	}
	switch c.Name() {
	case contivmodel.NetworkKind().Collection, contivmodel.EndpointGroupKind().Collection:
		return inDocker{c, e, d}
	}
	return c
}

// place finds the docker network of an object; there is none for infra networks.
func (c inDocker) place(key string) (state.NetworkRef, bool) {
	t, aci := c.engine.Topology()
	if c.Name() == contivmodel.NetworkKind().Collection {
		for _, n := range t.Networks {
			if n.Tenant+":"+n.NetworkName == key {
				p := state.NetworkRef{Tenant: n.Tenant, Network: n.NetworkName}
				return p, n.NwType != "infra" && !aci
			}
		}
	}
	for _, g := range t.Groups {
		if g.TenantName+":"+g.GroupName == key && c.Name() == contivmodel.EndpointGroupKind().Collection {
			return state.NetworkRef{Tenant: g.TenantName, Network: g.NetworkName, Group: g.GroupName}, true
		}
	}
	return state.NetworkRef{}, false
}

func (c inDocker) Put(ctx context.Context, key string, body []byte) (any, error) {
	_, err := c.Get(key)
	isNew := errs.Is(err, errs.NotFound)
	obj, err := c.Collection.Put(ctx, key, body)
	if err != nil || !isNew {
		return obj, err
	}
	p, ok := c.place(key)
	if !ok {
		return obj, nil
	}
	err = c.docker.Settle(ctx, p)
	if err == nil || errs.Is(err, errs.Timeout) {
		return obj, nil // it is made when the Engine answers
	}
	undo, done := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer done()
	if e := c.Collection.Delete(undo, key); e != nil {
		return nil, errs.New(errs.Other, "%w; %s is kept, it could not be taken back: %w", err, key, e)
	}
	return nil, errs.Wrap(errs.Other, err)
}

func (c inDocker) Delete(ctx context.Context, key string) error {
	p, ok := c.place(key)
	if !ok {
		return c.Collection.Delete(ctx, key)
	}
	if err := c.docker.Release(ctx, p); err != nil && !errs.Is(err, errs.Timeout) {
		return errs.Wrap(errs.InUse, err)
	}
	err := c.Collection.Delete(ctx, key)
	if s, shared := c.docker.(*docknet.Shared); shared && err != nil {
		s.Keep(p)
	}
	return err
}
