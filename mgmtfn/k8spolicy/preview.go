package k8spolicy

import (
	"context"
	"encoding/json"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of a preview.
const (
	mostPolicies = 64
	mostListed   = 1000
	mostGaps     = 1000
)

// Preview says which of the recorded connections policies would decide differently if those of
// a request were in place of those of the same names. A connection between two hosts is
// examined on that of its sender. An error's kind is Invalid for a request that cannot be.
func (c *Controller) Preview(ctx context.Context, recorded func(ctx context.Context, f flowapi.Filter, take func(*flowapi.Event) error) error, req flowapi.PolicyPreviewRequest) (*flowapi.Preview, error) {
	if len(req.NetworkPolicies) > mostPolicies || req.Limit < 0 || req.Limit > mostListed {
		return nil, errs.New(errs.Invalid, "expected at most %d NetworkPolicies, and a limit of at most %d", mostPolicies, mostListed)
	}
	c.mu.Lock()
	synced, before, after := c.synced, c.cluster.clone(), c.cluster.clone()
	c.mu.Unlock()
	if !synced {
		return nil, errs.New(errs.Unavailable, "the API server's lists of pods, namespaces and networkpolicies are not known yet")
	}
	for _, text := range req.NetworkPolicies {
		policy, err := readPolicy(text)
		if err != nil {
			return nil, err
		}
		after.SetPolicy(policy)
	}
	v := &previewer{host: c.cfg.Host, before: before, after: after, limit: req.Limit}
	return &v.out, recorded(ctx, flowapi.Filter{Since: req.Since}, v.take)
}

// readPolicy reads a NetworkPolicy, which must be all right.
func readPolicy(text json.RawMessage) (Policy, error) {
	var np networkingv1.NetworkPolicy
	if err := json.Unmarshal(text, &np); err != nil {
		return Policy{}, errs.New(errs.Invalid, "NetworkPolicy: %w", err)
	}
	if np.Kind != "NetworkPolicy" || np.Name == "" {
		return Policy{}, errs.New(errs.Invalid, "expected a NetworkPolicy with a name, got kind %.40q", np.Kind)
	}
	if np.Namespace == "" {
		np.Namespace = "default" // as kubectl
	}
	policy, err := ParsePolicy(&np)
	if err != nil {
		return policy, errs.New(errs.Invalid, "%w", err)
	}
	return policy, nil
}

// previewer compares two states of the cluster.
type previewer struct {
	host          string
	before, after *ClusterState
	limit         int
	out           flowapi.Preview
}

func (v *previewer) take(e *flowapi.Event) error {
	switch r := e.Record; {
	case r != nil && (r.Src.Host == v.host || r.Src.Host == "" && r.Dst.Host == v.host):
		v.examine(r)
	case e.Gap != nil && len(v.out.Gaps) < mostGaps:
		v.out.Gaps = append(v.out.Gaps, *e.Gap)
	}
	return nil
}

func (v *previewer) examine(r *flowapi.Record) {
	v.out.Examined++
	was, would := verdict(v.before, r), verdict(v.after, r)
	switch now, then := was.Verdict == flowapi.Allowed, would.Verdict == flowapi.Allowed; {
	case now && !then && r.Verdict == flowapi.Allowed:
		v.out.WouldDeny++
		v.out.Denied = v.list(v.out.Denied, r, would)
	case !now && then && r.Verdict != flowapi.Allowed:
		v.out.WouldAllow++
		v.out.Allowed = v.list(v.out.Allowed, r, would)
	}
}

func (v *previewer) list(list []flowapi.PreviewedFlow, r *flowapi.Record, by flowapi.Decision) []flowapi.PreviewedFlow {
	if len(list) >= v.limit {
		return list
	}
	return append(list, flowapi.PreviewedFlow{Record: *r, By: by})
}

// verdict is what the policies of both ends decide about a recorded connection.
func verdict(w *ClusterState, r *flowapi.Record) flowapi.Decision {
	last := flowapi.Decision{By: flowapi.ByDefault, Verdict: flowapi.Allowed}
	proto, ok := flowapi.ProtoNumber(r.Proto)
	if !ok {
		return last
	}
	for _, end := range []struct {
		own, peer flowapi.End
		out       bool
	}{{r.Src, r.Dst, true}, {r.Dst, r.Src, false}} {
		key, ok := keyOf(end.own.Name)
		p, known := w.Pod(key)
		if !ok || !known || end.own.Endpoint == "" {
			continue
		}
		if d := w.decide(p, end.out, connection(end.out, end.peer.Address, proto, r.Dst.Port)); d != nil {
			last = *d
			if d.Verdict != flowapi.Allowed {
				return last
			}
		}
	}
	return last
}

// clone is a state of its own.
func (w *ClusterState) clone() *ClusterState {
	out := NewClusterState()
	for _, n := range w.namespaces {
		out.SetNamespace(n)
	}
	for _, pods := range w.pods {
		for _, p := range pods {
			out.SetPod(p)
		}
	}
	for _, policies := range w.policies {
		for _, p := range policies {
			out.SetPolicy(p)
		}
	}
	return out
}
