package dockplugin

import (
	"context"
	"errors"

	"github.com/contiv/netplugin/state/docknet"
)

// RemoveNetworks removes the docker networks that agents have created on an Engine, or with
// dryRun only reports them. It continues if one cannot be removed. Somebody must answer the
// Engine's calls meanwhile.
func RemoveNetworks(ctx context.Context, engine Engine, driver string, dryRun bool, say func(what string)) error {
	list, err := engine.Networks(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, n := range list {
		if !docknet.SameDriver(n.Driver, driver) || !docknet.Ours(n) {
			continue
		}
		if !dryRun {
			if err := engine.RemoveNetwork(ctx, n.ID); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		say("docker network " + n.Name)
	}
	return errors.Join(failed...)
}
