package attachment

import (
	"context"

	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/mgmtfn/endpoint"
	"github.com/contiv/netplugin/mgmtfn/placement"
	"github.com/contiv/netplugin/state"
)

// asks reports whether the API server has to be asked for the network of a container.
func (a *Attacher) asks(req Request) bool {
	return req.Network.Network == "" && a.cfg.PodNetworks != nil && req.Pod != (Pod{})
}

// network returns the container's tenant, network and group: from the request, or else the
// pod's labels, or else the defaults.
func (a *Attacher) network(ctx context.Context, req Request) (state.NetworkRef, error) {
	ref := req.Network
	if a.asks(req) {
		found, err := a.cfg.PodNetworks.Network(ctx, req.Pod)
		if err != nil {
			return state.NetworkRef{}, err
		}
		ref = found
	}
	return placement.WithDefaults(ref), nil
}

// likely returns what network will probably return. What has been attached before is not
// risked for that.
func (a *Attacher) likely(req Request) (state.NetworkRef, bool) {
	if !a.asks(req) || len(a.existing(req.ContainerID, req.IfName)) > 0 {
		return state.NetworkRef{}, false
	}
	ref, ok := a.cfg.PodNetworks.Likely(req.Pod)
	return placement.WithDefaults(ref), ok
}

// addWhileAsking attaches a container to the network that its pod is probably in, while
// the API server is asked, and to another one if that is not right. Nothing runs in the
// container before Add returns.
func (a *Attacher) addWhileAsking(ctx context.Context, req Request, likely state.NetworkRef) (cni.Attached, error) {
	type answer struct {
		ref state.NetworkRef
		err error
	}
	asked := make(chan answer, 1)
	go func() {
		ref, err := a.network(ctx, req)
		asked <- answer{ref, err}
	}()
	res, err := a.addTo(ctx, req, likely)
	got := <-asked
	if got.err == nil && got.ref == likely {
		return res, err
	}
	if err == nil {
		a.endpoints.Undo(ctx, likely, endpoint.Name(req.ContainerID, req.IfName))
	}
	if got.err != nil {
		return cni.Attached{}, failed(StepNetwork, got.err)
	}
	return a.addTo(ctx, req, got.ref)
}
