package intent

import (
	"context"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/netmaster/trace"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/state/traceapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Sees says which tenants are shown to whoever asks; "" is for what belongs to none. nil
// shows everything.
type Sees func(tenant string) bool

// tenant reports whether the objects of a tenant are shown.
func (s Sees) tenant(name string) bool { return s == nil || s(name) }

// view is the engine as somebody sees it who does not see all tenants.
type view struct {
	*Engine
	sees Sees
}

var _ trace.Cluster = view{}

// EndpointsAt implements trace.Cluster.
func (v view) EndpointsAt(a netip.Addr, tenant string) []*state.Endpoint {
	found := v.Engine.EndpointsAt(a, tenant)
	m := v.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.DeleteFunc(found, func(ep *state.Endpoint) bool { return !v.sees.tenant(m.tenantOf(ep)) })
}

// EndpointNamed implements trace.Cluster.
func (v view) EndpointNamed(search string) *state.Endpoint { return v.findEndpoint(search, v.sees) }

// ServiceAt implements trace.Cluster.
func (v view) ServiceAt(name, tenant string) []netip.Addr {
	if !v.sees.tenant(tenant) {
		return nil
	}
	return v.Engine.ServiceAt(name, tenant)
}

// Trace follows a packet through the cluster; see trace.Run. Endpoints that are not shown
// are to the one who asks as if they did not exist.
func (e *Engine) Trace(ctx context.Context, q traceapi.Query, sees Sees) (*traceapi.Trace, error) {
	out, err := trace.Run(ctx, view{e, sees}, e.agents, q)
	if err != nil || sees == nil {
		return out, err
	}
	for _, hop := range slices.Concat(out.Request, out.Reply) {
		for _, end := range hop.Ends {
			if end.Endpoint != "" && !e.shown(end.Endpoint, sees) {
				return nil, errs.New(errs.Forbidden, "the packet comes to an endpoint of another tenant: role viewer of that tenant is needed")
			}
		}
	}
	return out, nil
}

// shown reports whether an endpoint is there and shown.
func (e *Engine) shown(id string, sees Sees) bool {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	r, ok := m.endpoints.base[id]
	return ok && sees.tenant(m.tenantOf(r.v))
}

// checkReserver refuses what the agent of a host asks for another host's addresses. In a
// swarm the manager reserves for all hosts, and names none.
func (e *Engine) checkReserver(ctx context.Context, host string) error {
	id := identity.From(ctx)
	if id.Kind != identity.Host || id.Name == host || host == "" && e.cfg.ClusterMode == modeSwarm {
		return nil
	}
	return errs.New(errs.Forbidden, "%s may not reserve or release addresses for host %q", id, host)
}

// checkAdmin refuses what only an admin may do. Whoever is neither a user nor a host has
// been judged before, or is this process.
func checkAdmin(ctx context.Context, verb, what string) error {
	id := identity.From(ctx)
	if id.IsAdmin() || id.Kind != identity.User && id.Kind != identity.Host {
		return nil
	}
	return errs.New(errs.Forbidden, "%s may not %s %s: role admin is needed", id, verb, what)
}

// checkHost refuses what the agent of a host asks for another host's endpoint. Everybody
// else has been judged before.
func checkHost(ctx context.Context, verb, endpoint, host string) error {
	if id := identity.From(ctx); id.Kind == identity.Host && id.Name != host {
		return errs.New(errs.Forbidden, "%s may not %s endpoint %s: it is on host %q", id, verb, endpoint, host)
	}
	return nil
}
