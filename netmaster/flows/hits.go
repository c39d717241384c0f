package flows

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/state/flowapi"
)

// hitsWithin is how long agents are waited for: who asks shall not wait for hosts that are
// unreachable.
const hitsWithin = 4 * time.Second

// Counters are asked how often rules have decided.
type Counters interface {
	// FlowHits returns what agents have counted, and why others did not answer, by host.
	FlowHits(ctx context.Context, hosts []string) (map[string]agents.FlowHits, map[string]error)
}

// hitKey is what hits of several hosts are summed up by.
type hitKey struct {
	tenant, by, policy, rule string
	verdict                  flowapi.Verdict
	audit                    bool
}

// Hits sums up how often rules have decided on all hosts. rules are those there are, which are
// listed although they never decided. Both are limited to what is shown.
func (s *Service) Hits(ctx context.Context, from Counters, rules []flowapi.Hits, show Sees) (flowapi.HitsAnswer, error) {
	there, down, err := s.hosts(ctx)
	if err != nil {
		return flowapi.HitsAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, hitsWithin)
	defer cancel()
	sums := hitSums{}
	answer := flowapi.HitsAnswer{Hits: []flowapi.Hits{}}
	for _, host := range down {
		answer.Missing = append(answer.Missing, unregistered(host))
	}
	sums.add(rules, show)
	answers, failed := from.FlowHits(ctx, there)
	for host, err := range failed {
		answer.Missing = append(answer.Missing, flowapi.Missing{Host: host, Error: err.Error()})
	}
	for _, one := range answers {
		if one.Since.After(answer.Since) {
			answer.Since = one.Since
		}
		sums.add(one.Hits, show)
	}
	for _, h := range sums {
		answer.Hits = append(answer.Hits, *h)
	}
	slices.SortFunc(answer.Hits, func(a, b flowapi.Hits) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.By, b.By), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Verdict, b.Verdict))
	})
	slices.SortFunc(answer.Missing, func(a, b flowapi.Missing) int { return cmp.Compare(a.Host, b.Host) })
	return answer, nil
}

type hitSums map[hitKey]*flowapi.Hits

func (sums hitSums) add(hits []flowapi.Hits, show Sees) {
	for _, h := range hits {
		if !show.tenant(h.Tenant) {
			continue
		}
		key := hitKey{h.Tenant, h.By, h.Policy, h.Rule, h.Verdict, h.Audit}
		sum := sums[key]
		if sum == nil {
			h.Minutes = slices.Clone(h.Minutes)
			sums[key] = &h
			continue
		}
		sum.Count += h.Count
		if sum.First.IsZero() || !h.First.IsZero() && h.First.Before(sum.First) {
			sum.First = h.First
		}
		if h.Last.After(sum.Last) {
			sum.Last = h.Last
		}
		sum.Minutes = addMinutes(sum.Minutes, h.Minutes)
	}
}

// addMinutes adds counts whose newest are last.
func addMinutes(a, b []uint32) []uint32 {
	if len(a) < len(b) {
		a, b = slices.Clone(b), a
	}
	for i, n := range b {
		a[len(a)-len(b)+i] += n
	}
	return a
}
