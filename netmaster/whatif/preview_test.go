package whatif

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/flows"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
)

// records is what hosts have recorded, in the order in which it is told.
type records []flowapi.Record

func (r records) Stream(_ context.Context, _ flowapi.Filter, _ flows.Sees, tell func(e flowapi.Event, more bool) error) error {
	for i := range r {
		if err := tell(flowapi.Event{Record: &r[i]}, true); err != nil {
			return err
		}
	}
	return nil
}

// TestPreviewCountsOnce: a connection that is told again when its second end is known, or by
// each host as one of its own, is one; others from the same port are others.
func TestPreviewCountsOnce(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	record := func(id string, late time.Duration, port uint16, verdict flowapi.Verdict, hosts ...string) flowapi.Record {
		return flowapi.Record{
			ID: id, Start: began.Add(late), Hosts: hosts, Tenant: "blue", Proto: "tcp", Verdict: verdict,
			Src: flowapi.End{Address: netip.MustParseAddr("10.1.1.1"), Port: 40000, Endpoint: "a", Host: "h1"},
			Dst: flowapi.End{Address: netip.MustParseAddr("10.1.1.2"), Port: port, Endpoint: "b", Host: "h2"},
		}
	}
	const allowed, denied = flowapi.Allowed, flowapi.Denied
	deny := state.PolicyRule{RuleID: "blue:g:blue:guard:blue:guard:1:inRx", Priority: 1, IPProtocol: 6, DstPort: 80, Action: "deny"}
	with, without := NewRules([]state.PolicyRule{deny}, nil), NewRules(nil, nil)
	for what, tc := range map[string]struct {
		told            records
		examined, would int
	}{
		"told again with both ends": {told: records{record("h1/1", 0, 80, allowed, "h1"), record("h1/1", 0, 80, allowed, "h1", "h2")}, examined: 1, would: 1},
		"not joined: clocks apart":  {told: records{record("h1/1", 0, 80, allowed, "h1"), record("h2/9", 20*time.Second, 80, allowed, "h2")}, examined: 1, would: 1},
		"two, one after the other":  {told: records{record("h1/1", 0, 80, allowed, "h1"), record("h1/2", time.Second, 80, allowed, "h1")}, examined: 2, would: 2},
		"two, long after":           {told: records{record("h1/1", 0, 80, allowed, "h1"), record("h2/2", 10*time.Minute, 80, allowed, "h2")}, examined: 2, would: 2},
		"two destinations":          {told: records{record("h1/1", 0, 80, allowed, "h1"), record("h2/2", 0, 81, allowed, "h2")}, examined: 2, would: 1},
		"denied at the second end":  {told: records{record("h1/1", 0, 80, allowed, "h1"), record("h2/2", time.Second, 80, denied, "h2")}, examined: 1},
		"denied at the first end":   {told: records{record("h2/2", 0, 80, denied, "h2"), record("h1/1", time.Second, 80, allowed, "h1")}, examined: 1},
		"both tell of two": {told: records{
			record("h1/1", 0, 80, allowed, "h1"), record("h1/2", time.Second, 80, allowed, "h1"), record("h2/1", 7*time.Second, 80, allowed, "h2"), record("h2/2", 8*time.Second, 80, allowed, "h2"),
		}, examined: 2, would: 2},
	} {
		t.Run(what, func(t *testing.T) {
			p, err := Preview(t.Context(), tc.told, without, with, flowapi.PreviewRequest{Limit: 10}, nil, nil)
			if err != nil || p.Examined != tc.examined || p.WouldDeny != tc.would || len(p.Denied) != tc.would || p.WouldAllow != 0 {
				t.Errorf("%+v (%v), want %d examined and %d denied", p, err, tc.examined, tc.would)
			}
		})
	}
}
