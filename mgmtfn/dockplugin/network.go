package dockplugin

import (
	"context"

	"github.com/contiv/netplugin/mgmtfn/dockplugin/cnm"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/docknet"
	"github.com/contiv/netplugin/utils/dockerd"
	"github.com/contiv/netplugin/utils/errs"
)

// createNetwork records which network a new docker network stands for, if the call says so.
// Otherwise the Engine's list of networks, with names, will.
func (s *Server) createNetwork(ctx context.Context, req cnm.CreateNetworkRequest) (cnm.Empty, error) {
	if on, ok := req.Options[cnm.OptionEnableIPv4].(bool); ok && !on {
		return cnm.Empty{}, errs.New(errs.Invalid, "networks of Contiv always have IPv4: leave out --ipv4=false")
	}
	ref, ok, err := s.refOfOptions(ctx, stringOptions(req.Options[cnm.OptionGeneric]))
	if err != nil {
		return cnm.Empty{}, err
	}
	if !ok {
		ref, ok = s.dir.ofPools(append(req.IPv4Data, req.IPv6Data...)...)
	}
	if ok {
		internal, _ := req.Options[cnm.OptionInternal].(bool)
		s.dir.learn(req.NetworkID, docknet.NewRecord(ref, dockerd.Network{ID: req.NetworkID, IPv6: len(req.IPv6Data) > 0, Internal: internal}))
	}
	s.engine.wake()
	return cnm.Empty{}, nil
}

func (s *Server) deleteNetwork(_ context.Context, req cnm.NetworkRequest) (cnm.Empty, error) {
	s.dir.forget(req.NetworkID)
	s.engine.wake()
	return cnm.Empty{}, nil
}

// refOfOptions returns the network named in the options of a docker network.
func (s *Server) refOfOptions(ctx context.Context, options map[string]string) (ref state.NetworkRef, ok bool, err error) {
	if p, ok := docknet.OfOptions(options); ok {
		return p, true, nil
	}
	tag := options[docknet.OptionTag]
	if tag == "" {
		return state.NetworkRef{}, false, nil
	}
	err = s.lookup(ctx, func(t docknet.Topology) (found bool) {
		ref, found = t.Tagged(tag)
		return found
	}, errs.New(errs.NotFound, "failed to lookup tag. No group and no network has the tag %q", tag))
	return ref, err == nil, err
}

// stringOptions returns the options that are strings.
func stringOptions(options any) map[string]string {
	out := map[string]string{}
	if m, ok := options.(map[string]any); ok {
		for k, v := range m {
			if text, ok := v.(string); ok {
				out[k] = text
			}
		}
	}
	return out
}

// gatewayCheck says for which families of a new network no gateway is needed.
func (s *Server) gatewayCheck(ctx context.Context, req cnm.GwAllocCheckRequest) (cnm.GwAllocCheckResponse, error) {
	var skip cnm.GwAllocCheckResponse
	ref, ok, err := s.refOfOptions(ctx, stringOptions(req.Options[cnm.OptionGeneric]))
	if err != nil || !ok {
		return skip, nil // unknown: the pool reports what is wrong
	}
	err = s.lookup(ctx, func(t docknet.Topology) bool {
		n, found := t.Network(ref.NetworkID())
		v4, v6 := docknet.Subnets(n)
		skip = cnm.GwAllocCheckResponse{SkipIPv4: !v4.Gateway.IsValid(), SkipIPv6: !v6.Gateway.IsValid()}
		return found
	}, errs.New(errs.NotFound, "network not found: %s", docknet.Key(ref)))
	if err != nil {
		return cnm.GwAllocCheckResponse{}, nil // as above
	}
	return skip, nil
}
