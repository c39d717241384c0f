package docknet

import (
	"context"
	"encoding/json"

	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/errs"
)

// Mapped protects the networks and groups for which docker networks of a swarm exist. In a
// swarm users create docker networks, and the agent of a manager records what they stand
// for.
type Mapped struct{ Store objdb.Store }

// Run does nothing: users create the docker networks.
func (Mapped) Run(context.Context) {}

// Keep does nothing: Release does not remove anything.
func (Mapped) Keep(state.NetworkRef) {}

// Settle does nothing.
func (Mapped) Settle(context.Context, state.NetworkRef) error { return nil }

// Release fails while a docker network exists for the object.
func (m Mapped) Release(ctx context.Context, p state.NetworkRef) error {
	kv, err := m.Store.Get(ctx, docknet.Root+docknet.Key(p))
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var r docknet.Record
	_ = json.Unmarshal(kv.Value, &r) // an id that cannot be read is not shown
	if r.Freed {
		return nil
	}
	return errs.New(errs.InUse, "docker network %.12s stands for %s: remove it first, with docker network rm", r.DocknetUUID, docknet.Name(p))
}
