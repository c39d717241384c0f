package ovsd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/drivers/ovsd/compiler"
)

// removed records what is removed.
type removed []string

func (r *removed) Remove(owner string) { *r = append(*r, owner) }

// TestRemovals: rules are removed before connections are re-evaluated, the rest in reverse
// order at the end, and what has been added again stays.
func TestRemovals(t *testing.T) {
	var sw removed
	gone := newRemovals()
	gone.add(&sw, compiler.NetworkFlows, "net/n1")
	gone.add(&sw, compiler.RuleFlows, "rule/1")
	gone.add(&sw, compiler.RuleFlows, "rule/1")
	gone.add(&sw, compiler.RuleFlows, "rule/2")
	gone.add(&sw, compiler.EndpointFlows, "ep/a")
	gone.add(&sw, compiler.EndpointFlows, "ep/b")
	gone.cancel(&sw, "ep/a")
	gone.cancel(&sw, "ep/unknown")
	gone.carryOut(ofPolicies)
	if diff := cmp.Diff(removed{"rule/2", "rule/1"}, sw); diff != "" {
		t.Errorf("before flows of tenants (-want +got):\n%s", diff)
	}
	gone.carryOut(func(compiler.Kind) bool { return true })
	if diff := cmp.Diff(removed{"rule/2", "rule/1", "ep/b", "net/n1"}, sw); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}
