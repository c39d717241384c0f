package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/contiv/netplugin/netmaster/api/apitest"
	"github.com/contiv/netplugin/objdb"
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
	filed(t, store, 0)
	play(t, base, []exchange{policy(`,"audit":true`), {"GET", policies + "default:p/", "", 200, `~"audit":true`}})
	filed(t, store, 3)
	audited("3")
	play(t, base, []exchange{
		{"POST", policies + "default:p/", `{"tenantName":"default","policyName":"p","audit":"yes"}`, 500, "audit: expected true or false, got string"},
		policy(`,"audit":false`),
		{"GET", policies + "default:p/", "", 200, `~{"key":"default:p","policyName":"p","tenantName"`},
	})
	filed(t, store, 0)
	play(t, base, []exchange{policy(`,"mode":"audit"`), {"GET", policies + "default:p/", "", 200, `~"mode":"audit"`}})
	audited("13")
}

// filed checks how many rules' records ask for the hosts' audit files.
func filed(t *testing.T, store objdb.Store, want int) {
	t.Helper()
	kvs, _, err := store.List(t.Context(), state.PolicyRuleRoot)
	got := 0
	for _, kv := range kvs {
		var rec state.PolicyRule
		if err := json.Unmarshal(kv.Value, &rec); err != nil {
			t.Fatal(err)
		}
		if rec.AuditFile {
			got++
		}
	}
	if err != nil || got != want {
		t.Errorf("%d records ask for the audit file, want %d (%v)", got, want, err)
	}
}
