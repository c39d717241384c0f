package attachment

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/utils/errs"
)

// Delete detaches a container. It succeeds if nothing is attached, and needs neither the
// namespace nor the pod. Before store and switch have been read nobody can tell what is
// attached: then it fails and has to be repeated.
func (a *Attacher) Delete(ctx context.Context, containerID, ifName string) error {
	if containerID == "" {
		return failed(StepRequest, fmt.Errorf("no container id given"))
	}
	release, err := a.endpoints.Lock(ctx, endpoint.Name(containerID, ifName))
	if err != nil {
		return failed(StepEndpoint, err)
	}
	defer release()
	a.awaitView(ctx)
	return a.delete(ctx, containerID, ifName)
}

// viewInterval is how often store and switch, which have no event for it, are checked
// again.
const viewInterval = 20 * time.Millisecond

// awaitView gives store and switch, which may be restarting, time to come back: a runtime
// that has detached a container expects that nothing of it remains.
func (a *Attacher) awaitView(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Patience)
	defer cancel()
	again := time.NewTicker(viewInterval)
	defer again.Stop()
	for a.Status() != nil {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// delete is Delete for callers that hold the lock.
func (a *Attacher) delete(ctx context.Context, containerID, ifName string) error {
	if err := a.Status(); err != nil {
		return failed(StepInterface, errs.Wrap(errs.Unavailable, err))
	}
	for id, e := range a.existing(containerID, ifName) {
		if err := a.endpoints.Remove(ctx, e); err != nil {
			return failed(StepDetach, err)
		}
		a.cfg.Log.WithField("endpoint", id).Info("container detached")
	}
	return nil
}

// existing returns what exists of an attachment: endpoint records of this host, and ports
// of the interface.
func (a *Attacher) existing(containerID, ifName string) map[string]endpoint.Endpoint {
	out := a.endpoints.Named(endpoint.Name(containerID, ifName))
	maps.DeleteFunc(out, func(_ string, e endpoint.Endpoint) bool {
		return e.Record == nil && (e.Port.ContainerID != containerID || e.Port.IfName != ifName)
	})
	return out
}
