package whatif

import (
	"context"
	"time"

	"github.com/contiv/netplugin/netmaster/flows"
	"github.com/contiv/netplugin/state/flowapi"
	"github.com/contiv/netplugin/utils/errs"
)

// Bounds of a preview.
const (
	period       = time.Hour // unless it is asked for another one
	listed       = 100
	mostListed   = 1000
	mostChanges  = 256
	mostPolicies = 64
	mostGaps     = 1000
	mostHalves   = 1 << 17     // connections of which one end may follow
	halvesApart  = time.Minute // how much the clocks of both ends may differ
)

// Recorded tells of recorded connections; see flows.Service.
type Recorded interface {
	Stream(ctx context.Context, f flowapi.Filter, sees flows.Sees, tell func(e flowapi.Event, more bool) error) error
}

// Check says what is wrong with a request; its error's kind is Invalid. It fills in what was
// left out.
func Check(req *flowapi.PreviewRequest, now time.Time) error {
	if req.Since.IsZero() {
		req.Since = now.Add(-period)
	}
	if req.Limit == 0 {
		req.Limit = listed
	}
	switch {
	case req.Limit < 0 || req.Limit > mostListed:
		return errs.New(errs.Invalid, "limit %d: expected 1 to %d", req.Limit, mostListed)
	case len(req.Changes) > mostChanges:
		return errs.New(errs.Invalid, "%d changes: expected at most %d", len(req.Changes), mostChanges)
	case len(req.NetworkPolicies) > mostPolicies:
		return errs.New(errs.Invalid, "%d NetworkPolicies: expected at most %d", len(req.NetworkPolicies), mostPolicies)
	case len(req.Changes) == 0 && len(req.NetworkPolicies) == 0:
		return errs.New(errs.Invalid, "expected changes or networkPolicies to preview")
	}
	return nil
}

// Preview says which of the recorded connections, as far as they are shown, rules would decide
// differently after than before a change.
func Preview(ctx context.Context, recorded Recorded, before, after *Rules, req flowapi.PreviewRequest, tenants []string, sees flows.Sees) (*flowapi.Preview, error) {
	out := &flowapi.Preview{Denied: []flowapi.PreviewedFlow{}, Allowed: []flowapi.PreviewedFlow{}}
	count := &tally{out: out, limit: req.Limit, before: before, after: after, halves: map[flows.Tuple][]half{}}
	f := flowapi.Filter{Since: req.Since, Tenants: tenants}
	err := recorded.Stream(ctx, f, sees, func(e flowapi.Event, _ bool) error {
		switch {
		case e.Record != nil:
			count.add(e.Record)
		case e.Missing != nil:
			out.Missing = append(out.Missing, *e.Missing)
		case e.Gap != nil && len(out.Gaps) < mostGaps:
			out.Gaps = append(out.Gaps, *e.Gap)
		}
		return nil
	})
	return out, err
}
