package intent

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/whatif"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

var _ whatif.Cluster = view{}

// Rules implements whatif.Cluster.
func (e *Engine) Rules() *whatif.Rules {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	return rulesOf(m.rules.records.committed(), m.groups.records.committed())
}

// rulesOf are the rules that records say.
func rulesOf(rules *table[string, state.PolicyRule], groups *table[string, state.EndpointGroup]) *whatif.Rules {
	var records []state.PolicyRule
	for _, rec := range rules.all() {
		records = append(records, *rec)
	}
	numbers := map[string]int{}
	for id, g := range groups.all() {
		numbers[id] = g.EndpointGroupID
	}
	return whatif.NewRules(records, numbers)
}

// ServiceOf implements whatif.Cluster.
func (e *Engine) ServiceOf(a netip.Addr, tenant string) *state.ServiceLB {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, r := range m.services.records.base {
		if r.v.Tenant == tenant && (r.v.IPAddress == a.String() || r.v.IPv6Address == a.String()) {
			return r.v
		}
	}
	return nil
}

// ServiceOf implements whatif.Cluster.
func (v view) ServiceOf(a netip.Addr, tenant string) *state.ServiceLB {
	if !v.sees.tenant(tenant) {
		return nil
	}
	return v.Engine.ServiceOf(a, tenant)
}

// Explain says what the rules decide about a connection; see whatif.Explain. Endpoints that are
// not shown are to the one who asks as if they did not exist.
func (e *Engine) Explain(ctx context.Context, q flowapi.Question, sees Sees, applied func(host string) flowapi.Applied) (*flowapi.Explanation, error) {
	var pods whatif.Agents
	if e.cfg.ClusterMode == "kubernetes" {
		pods = e.agents
	}
	return whatif.Explain(ctx, view{e, sees}, pods, applied, q)
}

// Agents asks the agents of hosts.
func (e *Engine) Agents() *agents.Client { return e.agents }

// RuleNames lists the rules of all policies, as counters without hits.
func (e *Engine) RuleNames() []flowapi.Hits {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []flowapi.Hits
	for _, r := range m.rules.base {
		out = append(out, flowapi.Hits{Tenant: r.v.TenantName, By: flowapi.ByRule, Policy: r.v.PolicyName, Rule: r.v.RuleID, Verdict: verdictOf(r.v.Action)})
	}
	return out
}

// verdictOf is what a rule's action means.
func verdictOf(action string) flowapi.Verdict {
	switch action {
	case contivmodel.ActionDeny:
		return flowapi.Denied
	case contivmodel.ActionReject:
		return flowapi.Rejected
	}
	return flowapi.Allowed
}

// errRehearsed has the writer undo what was planned.
var errRehearsed = errors.New("this was a rehearsal")

// Rehearse plans changes as if they were made, one after the other, and returns the rules
// before and after. Nothing is changed. Errors are those of the changes.
func (e *Engine) Rehearse(ctx context.Context, changes []flowapi.Change) (before, after *whatif.Rules, err error) {
	plans := make([]func(*tx) error, len(changes))
	for i, c := range changes {
		if plans[i], err = e.planned(ctx, c); err != nil {
			return nil, nil, err
		}
	}
	_, err = submit[string](ctx, e.writer, true, func(x *tx) (reply, error) {
		before = rulesOf(x.rules.records, x.groups.records)
		for _, plan := range plans {
			if err := plan(x); err != nil {
				return nil, err
			}
		}
		after = rulesOf(x.rules.records, x.groups.records)
		return nil, errRehearsed
	})
	if !errors.Is(err, errRehearsed) {
		return nil, nil, err
	}
	return before, after, nil
}

// planned returns what plans a change, as a request that makes it would.
func (e *Engine) planned(ctx context.Context, c flowapi.Change) (func(*tx) error, error) {
	for _, kind := range e.model.kinds {
		if r, ok := kind.(rehearsed); ok && kind.serve(e).Name() == c.Kind {
			return r.plan(ctx, c)
		}
	}
	return nil, errs.New(errs.Invalid, "kind %.40q: expected the name of a collection, as rules, policys or endpointGroups", c.Kind)
}

// rehearsed is a kind of objects whose changes can be planned.
type rehearsed interface {
	plan(ctx context.Context, c flowapi.Change) (func(*tx) error, error)
}

func (o *objects[T, O]) plan(ctx context.Context, c flowapi.Change) (func(*tx) error, error) {
	if err := o.mayChange(ctx, c.Key); err != nil {
		return nil, err
	}
	switch c.Verb {
	case "delete":
		return func(x *tx) error { return o.planRemove(ctx, x, c.Key) }, nil
	case "put":
		obj, err := o.kind.Decode(c.Key, c.Object)
		if err != nil {
			return nil, err
		}
		return func(x *tx) error { return o.planStore(ctx, x, obj) }, nil
	}
	return nil, errs.New(errs.Invalid, "verb %.40q: expected put or delete", c.Verb)
}

// mayChange refuses to rehearse what somebody may not do.
func (o *objects[T, O]) mayChange(ctx context.Context, key string) error {
	id := identity.From(ctx)
	tenant := ""
	if d := o.kind.Description(); d.Type != contivmodel.TenantType && d.Names[0] == "tenantName" {
		tenant, _, _ = strings.Cut(key, ":")
	}
	if id.IsAdmin() || tenant != "" && id.Changes(tenant) {
		return nil
	}
	return errs.New(errs.Forbidden, "%s may not change %s %.80q: role ops of its tenant is needed", id, o.kind.Type, key)
}
