package whatif

import (
	"cmp"
	"context"
	"slices"

	"github.com/contiv/netplugin/state/flowapi"
)

// Hosts preview NetworkPolicies.
type Hosts interface {
	Hosts(ctx context.Context) ([]string, error)
	// TryPolicies returns the previews, and why there is none of the others, by host.
	TryPolicies(ctx context.Context, hosts []string, req flowapi.PolicyPreviewRequest) (map[string]flowapi.Preview, map[string]error)
}

// PreviewPolicies adds to out what NetworkPolicies would have done to the connections that the
// agents of all hosts have recorded. Each connection is examined by one of them.
func PreviewPolicies(ctx context.Context, agents Hosts, req flowapi.PreviewRequest, out *flowapi.Preview) error {
	hosts, err := agents.Hosts(ctx)
	if err != nil {
		return err
	}
	previews, failed := agents.TryPolicies(ctx, hosts, flowapi.PolicyPreviewRequest{NetworkPolicies: req.NetworkPolicies, Since: req.Since, Limit: req.Limit})
	for host, err := range failed {
		out.Missing = append(out.Missing, flowapi.Missing{Host: host, Error: err.Error()})
	}
	for _, one := range previews {
		out.Examined, out.WouldDeny, out.WouldAllow = out.Examined+one.Examined, out.WouldDeny+one.WouldDeny, out.WouldAllow+one.WouldAllow
		out.Denied, out.Allowed = append(out.Denied, one.Denied...), append(out.Allowed, one.Allowed...)
		out.Gaps = append(out.Gaps, one.Gaps...)
	}
	for _, list := range []*[]flowapi.PreviewedFlow{&out.Denied, &out.Allowed} {
		slices.SortFunc(*list, func(a, b flowapi.PreviewedFlow) int { return a.Record.Start.Compare(b.Record.Start) })
		*list = (*list)[:min(len(*list), req.Limit)]
	}
	slices.SortFunc(out.Missing, func(a, b flowapi.Missing) int { return cmp.Compare(a.Host, b.Host) })
	out.Gaps = out.Gaps[:min(len(out.Gaps), mostGaps)]
	return nil
}
