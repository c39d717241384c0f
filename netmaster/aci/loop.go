package aci

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/reconcile"
	"github.com/contiv/netplugin/utils/errs"
)

// Begin implements reconcile.Loop. A new app profile that the gateway does not accept is
// removed again. Any other change stays, and the gateway is told again until it accepts
// it.
func (f *Fabric) Begin(_ context.Context, c reconcile.Change) (reconcile.Pending, error) {
	switch c.Type {
	case contivmodel.AppProfileType, contivmodel.EndpointGroupType, contivmodel.RuleType, contivmodel.AciGwType:
		return &pending{fabric: f, change: c, before: f.source.FabricProfiles()}, nil
	default:
		return nil, nil
	}
}

// pending is a change of objects that profiles are made of.
type pending struct {
	fabric *Fabric
	change reconcile.Change
	before map[string]Profile
}

// Settle waits until the gateway has been told once of the profiles that are different.
func (p *pending) Settle(ctx context.Context) (undo bool, err error) {
	err = p.fabric.Settle(ctx, p.differing())
	switch {
	case err == nil, p.change.Op == reconcile.Delete: // the fabric logs it, and retries
		return false, nil
	case p.change.Op == reconcile.Create && p.change.Type == contivmodel.AppProfileType:
		return true, err
	default:
		// Not a kind that makes clients repeat the request: it has been made.
		return false, errs.Wrap(errs.Other, fmt.Errorf("%w; the change is kept and the gateway will be told again", err))
	}
}

// Cancel does nothing: the gateway has not been told.
func (*pending) Cancel() {}

// differing are the keys of the profiles that are not what they were.
func (p *pending) differing() []string {
	after := p.fabric.source.FabricProfiles()
	all := maps.Clone(p.before)
	maps.Copy(all, after)
	var keys []string
	for key := range all {
		if !p.before[key].Same(after[key]) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
