package api_test

import (
	"fmt"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/state"
)

// TestLargeChangeOnStore makes changes that are larger than a transaction on a real
// store: groups come under a policy with many rules, change it, and leave it.
func TestLargeChangeOnStore(t *testing.T) {
	store := openEmbedded(t)
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	rules := store.MaxOps()
	play(t, base, []exchange{
		network("n1", "10.1.1.0/24"), put(policyPath, "p1", `"policyName":"p1"`), put(policyPath, "p2", `"policyName":"p2"`),
	})
	for i := range rules {
		play(t, base, []exchange{rule("p1", fmt.Sprint(i), fmt.Sprintf(`,"direction":"in","action":"allow","protocol":"tcp","port":%d`, i+1))})
	}
	count := func(when string, want int) {
		t.Helper()
		kvs, _, err := store.List(t.Context(), state.PolicyRuleRoot)
		if err != nil || len(kvs) != want {
			t.Errorf("%s: %d records, %v, want %d", when, len(kvs), err, want)
		}
		kvs, _, err = store.List(t.Context(), state.OperRoot+"netmaster/staged/")
		if err != nil || len(kvs) != 0 {
			t.Errorf("%s: %d pieces are left, %v", when, len(kvs), err)
		}
	}
	play(t, base, []exchange{group("a", `,"policies":["p1"]`), group("b", `,"policies":["p1","p2"]`)})
	count("two groups", 4*rules)
	play(t, base, []exchange{group("a", `,"policies":["p2"]`)})
	count("one has changed", 2*rules)
	play(t, base, []exchange{remove(groupPath, "default:b")})
	count("the other is gone", 0)
	play(t, base, []exchange{remove(policyPath, "default:p1"), {"GET", rulePath, "", 200, `[]`}})
}
