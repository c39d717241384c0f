package intent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// cleanupAtOnce limits how many endpoints are cleaned up concurrently.
const cleanupAtOnce = 8

// CleanUpEndpoints removes endpoints of a tenant, and has their hosts' agents detach them:
// with category net those of network what, with group those of group what, with ep those
// whose endpoint id contains what. It continues after failures, returns how many have been
// cleaned up, and says which could not be. An endpoint whose record was removed but whose
// agent could not be reached counts as failed.
func (e *Engine) CleanUpEndpoints(ctx context.Context, tenant, category, what string) (int, error) {
	eps, err := e.endpointsToCleanUp(tenant, category, what)
	if err != nil {
		return 0, err
	}
	var (
		mu     sync.Mutex
		failed []error
		g      errgroup.Group
	)
	g.SetLimit(cleanupAtOnce)
	for _, ep := range eps {
		g.Go(func() error {
			if err := e.cleanUp(ctx, ep); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	if len(failed) > 0 {
		return len(eps) - len(failed), errs.Wrap(errs.Internal, errors.Join(failed...))
	}
	return len(eps), nil
}

func (e *Engine) cleanUp(ctx context.Context, ep *state.Endpoint) error {
	if _, err := e.deleteEndpoint(ctx, ep.ID); err != nil && !errs.Is(err, errs.NotFound) {
		return err
	}
	if ep.HomingHost == "" {
		return nil
	}
	return e.agents.ReclaimEndpoint(ctx, ep.HomingHost, ep.ID)
}

// endpointsToCleanUp lists the endpoints for CleanUpEndpoints, sorted by id.
func (e *Engine) endpointsToCleanUp(tenant, category, what string) ([]*state.Endpoint, error) {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	var chosen func(*state.Endpoint) bool
	switch category {
	case "net":
		chosen = func(ep *state.Endpoint) bool { return ep.NetID == state.NetworkID(what, tenant) }
	case "group":
		chosen = func(ep *state.Endpoint) bool { return ep.EndpointGroupKey == state.GroupID(what, tenant) }
	case "ep":
		chosen = func(ep *state.Endpoint) bool { return strings.Contains(ep.EndpointID, what) }
	default:
		return nil, errs.New(errs.Invalid, "unknown category %q: expected net, group or ep", category)
	}
	var eps []*state.Endpoint
	for _, id := range slices.Sorted(maps.Keys(m.endpoints.base)) {
		ep := m.endpoints.base[id].v
		if m.tenantOf(ep) == tenant && chosen(ep) {
			eps = append(eps, ep)
		}
	}
	return eps, nil
}

// networkOf returns the names of an endpoint's network and tenant. Both may have dots: only
// the network's record tells them. If that is gone, cutting the id is the best guess.
func (m *model) networkOf(ep *state.Endpoint) (network, tenant string) {
	if net, ok := m.networks.records.base[ep.NetID]; ok {
		return net.v.NetworkName, net.v.Tenant
	}
	return state.SplitNetworkID(ep.NetID)
}

// tenantOf returns the tenant of an endpoint.
func (m *model) tenantOf(ep *state.Endpoint) string {
	_, tenant := m.networkOf(ep)
	return tenant
}
