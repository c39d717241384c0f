package api_test

import (
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
)

// TestAuditMode: the records of a rule say whether it is enforced, by its own mode or else by
// its policy's, which can be changed.
func TestAuditMode(t *testing.T) {
	const policies, rules = "/api/v1/policys/", "/api/v1/rules/"
	store := memory.New()
	base := apitest.Start(t, store, apitest.Config(apitest.Log(t)))
	policy := func(mode string) exchange {
		return exchange{"POST", policies + "default:p/", `{"tenantName":"default","policyName":"p"` + mode + `}`, 200, `~`}
	}
	rule := func(id, mode string) exchange {
		return exchange{"POST", rules + "default:p:" + id + "/", `{"tenantName":"default","policyName":"p","ruleId":"` + id + `","direction":"in","action":"deny"` + mode + `}`, 200, `~`}
	}
	audited := func(want string) {
		t.Helper()
		kvs, _, err := store.List(t.Context(), state.PolicyRuleRoot)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, kv := range kvs {
			id := strings.Split(kv.Key, ":")
			if strings.Contains(string(kv.Value), `"Mode":"audit"`) {
				got += id[len(id)-2]
			}
		}
		if len(kvs) != 3 || got != want {
			t.Errorf("%d records, those of %q are in audit mode, want %q", len(kvs), got, want)
		}
	}
	play(t, base, []exchange{
		{"POST", networkPath + "default:n/", `{"tenantName":"default","networkName":"n","encap":"vxlan","subnet":"10.1.1.0/24"}`, 200, `~`},
		policy(`,"mode":"audit"`),
		{"POST", groupPath + "default:g/", `{"groupName":"g","networkName":"n","tenantName":"default","policies":["p"]}`, 200, `~`},
		rule("1", ""), rule("2", `,"mode":"enforce"`), rule("3", `,"mode":"audit"`),
		{"POST", rules + "default:p:4/", `{"tenantName":"default","policyName":"p","ruleId":"4","direction":"in","action":"deny","mode":"dry"}`, 500, "mode string invalid format"},
	})
	audited("13")
	play(t, base, []exchange{policy("")})
	audited("3")
	play(t, base, []exchange{policy(`,"mode":"audit"`), {"GET", policies + "default:p/", "", 200, `~"mode":"audit"`}})
	audited("13")
}
