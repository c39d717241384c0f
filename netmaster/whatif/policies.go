package whatif

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/contiv/netplugin/state/flowapi"
)

// atOnce limits how many agents are asked at the same time.
const atOnce = 32

// Hosts preview NetworkPolicies.
type Hosts interface {
	Hosts(ctx context.Context) ([]string, error)
	TryPolicies(ctx context.Context, host string, req flowapi.PolicyPreviewRequest) (*flowapi.Preview, error)
}

// PreviewPolicies adds to out what NetworkPolicies would have done to the connections that the
// agents of all hosts have recorded. Each connection is examined by one of them.
func PreviewPolicies(ctx context.Context, agents Hosts, req flowapi.PreviewRequest, out *flowapi.Preview) error {
	hosts, err := agents.Hosts(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, host := range hosts {
		g.Go(func() error {
			one, err := agents.TryPolicies(ctx, host, flowapi.PolicyPreviewRequest{NetworkPolicies: req.NetworkPolicies, Since: req.Since, Limit: req.Limit})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Missing = append(out.Missing, flowapi.Missing{Host: host, Error: err.Error()})
				return nil
			}
			out.Examined, out.WouldDeny, out.WouldAllow = out.Examined+one.Examined, out.WouldDeny+one.WouldDeny, out.WouldAllow+one.WouldAllow
			out.Denied, out.Allowed = append(out.Denied, one.Denied...), append(out.Allowed, one.Allowed...)
			out.Gaps = append(out.Gaps, one.Gaps...)
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	for _, list := range []*[]flowapi.PreviewedFlow{&out.Denied, &out.Allowed} {
		slices.SortFunc(*list, func(a, b flowapi.PreviewedFlow) int { return a.Record.Start.Compare(b.Record.Start) })
		*list = (*list)[:min(len(*list), req.Limit)]
	}
	slices.SortFunc(out.Missing, func(a, b flowapi.Missing) int { return cmp.Compare(a.Host, b.Host) })
	out.Gaps = out.Gaps[:min(len(out.Gaps), mostGaps)]
	return nil
}
