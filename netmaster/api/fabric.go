package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/aci"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/utils/errs"
)

// undoWithin bounds how long an object that the fabric did not take is taken back for.
const undoWithin = 5 * time.Second

// inFabric is a collection whose changes an ACI fabric must take. A change waits until
// the gateway has been told once. Where it was not, an app profile that is new is taken
// back; everything else stands, and the gateway is told again until it understands.
type inFabric struct {
	intent.Collection
	engine *intent.Engine
	fabric *aci.Fabric
}

// withFabric wraps the collections that a fabric's profiles are made of.
func withFabric(c intent.Collection, e *intent.Engine, f *aci.Fabric) intent.Collection {
	switch c.Name() {
	case contivmodel.AppProfileKind().Collection, contivmodel.EndpointGroupKind().Collection,
		contivmodel.RuleKind().Collection, contivmodel.AciGwKind().Collection:
		return inFabric{Collection: c, engine: e, fabric: f}
	}
	return c
}

func (c inFabric) Put(ctx context.Context, key string, body []byte) (any, error) {
	_, err := c.Get(key)
	isNew := errs.Is(err, errs.NotFound)
	before := c.engine.FabricProfiles()
	obj, err := c.Collection.Put(ctx, key, body)
	if err != nil {
		return nil, err
	}
	err = c.fabric.Settle(ctx, c.differing(before))
	if err == nil {
		return obj, nil
	}
	if isNew && c.Name() == contivmodel.AppProfileKind().Collection {
		undo, done := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer done()
		if e := c.Collection.Delete(undo, key); e != nil {
			return nil, errs.New(errs.Other, "%w; the app profile is kept, it could not be taken back: %w", err, e)
		}
		return nil, err
	}
	// Not a kind that makes clients repeat the request: it has been carried out.
	return nil, errs.Wrap(errs.Other, fmt.Errorf("%w; the change is kept and the gateway will be told again", err))
}

// Delete does not fail for the gateway's sake.
func (c inFabric) Delete(ctx context.Context, key string) error {
	before := c.engine.FabricProfiles()
	if err := c.Collection.Delete(ctx, key); err != nil {
		return err
	}
	_ = c.fabric.Settle(ctx, c.differing(before)) // the fabric logs it and goes on trying
	return nil
}

// differing are the keys of the profiles that are not what they were.
func (c inFabric) differing(before map[string]aci.Profile) []string {
	after := c.engine.FabricProfiles()
	all := maps.Clone(before)
	maps.Copy(all, after)
	var keys []string
	for key := range all {
		if !before[key].Same(after[key]) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
