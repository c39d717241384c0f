package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/netmaster/flows"
	"github.com/contiv/netplugin/netmaster/intent"
	"github.com/contiv/netplugin/netmaster/whatif"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/state/identity"
	"github.com/contiv/netplugin/utils/errs"
)

// previewTimeout is longer than other requests have: an hour of connections is read.
const previewTimeout = time.Minute

func isPreview(r *http.Request) bool {
	return strings.TrimSuffix(r.URL.Path, "/")+"/" == flowapi.PathPreview
}

// whatIf routes the questions what rules decide, would decide, and have decided.
func (h *Handler) whatIf(e *intent.Engine, members *cluster.Members) {
	route := func(method, path string, handle http.HandlerFunc) {
		h.router.Methods(method).Path(strings.TrimSuffix(path, "/") + slash).HandlerFunc(handle)
	}
	route(http.MethodGet, flowapi.PathExplain, func(w http.ResponseWriter, r *http.Request) {
		q, err := flowapi.ParseQuestion(r.URL.Query())
		if err != nil {
			h.fail(w, r, err)
			return
		}
		answer, err := e.Explain(r.Context(), q, scope(r), appliedBy(e, members))
		h.answer(w, r, answer, err)
	})
	route(http.MethodPost, flowapi.PathPreview, func(w http.ResponseWriter, r *http.Request) {
		answer, err := h.preview(w, r, e)
		h.answer(w, r, answer, err)
	})
	route(http.MethodGet, flowapi.PathHits, func(w http.ResponseWriter, r *http.Request) {
		asked, err := narrow(r.URL.Query()["tenant"], identity.From(r.Context()))
		if err != nil {
			h.fail(w, r, err)
			return
		}
		var show flows.Sees
		if len(asked) > 0 {
			show = func(tenant string) bool { return slices.Contains(asked, tenant) }
		}
		answer, err := h.flows.Hits(r.Context(), e.Agents(), e.RuleNames(), show)
		h.answer(w, r, answer, err)
	})
}

// preview reads a request, plans its changes without making them, and compares the rules over
// what was recorded.
func (h *Handler) preview(w http.ResponseWriter, r *http.Request, e *intent.Engine) (*flowapi.Preview, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	var req flowapi.PreviewRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, errs.New(errs.Invalid, "request body: %w", err)
	}
	if err := whatif.Check(&req, time.Now()); err != nil {
		return nil, err
	}
	sees := flows.Sees(scope(r))
	tenants, err := narrow(nil, identity.From(r.Context()))
	if err != nil {
		return nil, err
	}
	out := &flowapi.Preview{Denied: []flowapi.PreviewedFlow{}, Allowed: []flowapi.PreviewedFlow{}}
	if len(req.Changes) > 0 {
		before, after, err := e.Rehearse(r.Context(), req.Changes)
		if err != nil {
			return nil, err
		}
		if out, err = whatif.Preview(r.Context(), h.flows, before, after, req, tenants, sees); err != nil {
			return nil, err
		}
	}
	if len(req.NetworkPolicies) > 0 {
		if err := h.previewPolicies(r.Context(), e, req, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// previewPolicies adds what agents say of NetworkPolicies.
func (h *Handler) previewPolicies(ctx context.Context, e *intent.Engine, req flowapi.PreviewRequest, out *flowapi.Preview) error {
	if !identity.From(ctx).IsAdmin() { // they are of the cluster, not of a tenant
		return errs.New(errs.Forbidden, "%s may not preview NetworkPolicies: role admin is needed", identity.From(ctx))
	}
	return whatif.PreviewPolicies(ctx, e.Agents(), req, out)
}

// appliedBy says how far hosts are.
func appliedBy(e *intent.Engine, members *cluster.Members) func(host string) flowapi.Applied {
	revision, settings := e.Written()
	hosts := map[string]clusterapi.Host{}
	for _, host := range cluster.Join(members.Hosts(), nil, revision, settings) {
		hosts[host.Host] = host
	}
	return func(label string) flowapi.Applied {
		host, ok := hosts[label]
		switch {
		case !ok || host.State == clusterapi.Gone:
			return flowapi.Applied{Error: "its netplugin is not registered"}
		case host.State == clusterapi.Silent:
			return flowapi.Applied{Error: "its netplugin does not report"}
		case host.Lag > 0:
			return flowapi.Applied{Error: strings.Join(append([]string{"it is behind"}, host.Reasons...), ": ")}
		}
		return flowapi.Applied{Done: true}
	}
}
