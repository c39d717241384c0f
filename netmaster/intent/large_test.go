package intent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/objdb/memory"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// manyRules is more than fits into two transactions.
const manyRules = 300

// withRules creates a network, a group and a policy with many rules.
func (e *Engine) withRules(t *testing.T) {
	t.Helper()
	e.mustNetwork(t, "n", "10.1.1.0/24")
	e.mustPut(t, e.groups(), "default:g", `{"tenantName":"default","networkName":"n","groupName":"g"}`)
	e.mustPut(t, e.policies(), "default:p", `{"tenantName":"default","policyName":"p"}`)
	for i := range manyRules {
		e.mustPut(t, e.rules(), fmt.Sprint("default:p:", i),
			fmt.Sprintf(`{"tenantName":"default","policyName":"p","ruleId":"%d","direction":"in","action":"allow","protocol":"tcp","port":%d}`, i, i+1))
	}
}

func (e *Engine) attachPolicy(ctx context.Context) error {
	_, err := e.groups().Put(ctx, "default:g", []byte(`{"tenantName":"default","networkName":"n","groupName":"g","policies":["p"]}`))
	return err
}

// attached reports how much of the attachment is in the store: whether the group has it,
// and the number of records.
func attached(t *testing.T, store objdb.Store) (says bool, records int) {
	t.Helper()
	kv, err := store.Get(t.Context(), state.ModelRoot+"endpointGroup/default:g")
	if err != nil {
		t.Fatal(err)
	}
	var g contivmodel.EndpointGroup
	if err := json.Unmarshal(kv.Value, &g); err != nil {
		t.Fatal(err)
	}
	kvs, _, err := store.List(t.Context(), state.PolicyRuleRoot)
	if err != nil {
		t.Fatal(err)
	}
	left, _, err := store.List(t.Context(), stagedRoot)
	if err != nil || len(left) > 0 {
		t.Errorf("%d pieces are left over, %v", len(left), err)
	}
	return len(g.Policies) > 0, len(kvs)
}

// TestLargeChange kills a leader at each commit of a change that is larger than a
// transaction, before and after the store has applied it. The next leader finds the change
// made as a whole or not at all.
func TestLargeChange(t *testing.T) {
	happened := map[bool]int{}
	for n := 1; ; n++ {
		for _, applied := range []bool{false, true} {
			store := memory.New()
			e, l, stop := lead(t, store)
			e.withRules(t)
			away := errs.New(errs.Unavailable, "the store is unavailable")
			commits := 0
			store.OnCommit(func(txn objdb.Txn) memory.Fault {
				if len(txn.Then) > store.MaxOps() {
					t.Errorf("a transaction of %d operations", len(txn.Then))
				}
				if commits++; commits < n {
					return memory.Fault{}
				}
				l.Lose()
				if applied && commits == n {
					return memory.Fault{After: away}
				}
				return memory.Fault{Before: away}
			})
			err := e.attachPolicy(t.Context())
			store.OnCommit(nil)
			stop()
			next, _, stopNext := lead(t, store)
			says, records := attached(t, store)
			if want := 2 * manyRules; says && records != want || !says && records != 0 {
				t.Errorf("killed at commit %d (applied: %v): attached is %v, with %d records", n, applied, says, records)
			}
			happened[says]++
			next.checkConsistent(t)
			if err := next.attachPolicy(t.Context()); err != nil {
				t.Errorf("repeated: %v", err)
			}
			if says, records := attached(t, store); !says || records != 2*manyRules {
				t.Errorf("repeated: attached is %v, with %d records", says, records)
			}
			stopNext()
			if err == nil { // there was no such commit
				if happened[true] < 3 || happened[false] < 3 {
					t.Errorf("happened or not: %v", happened)
				}
				return
			}
			if !errs.Is(err, errs.Unavailable) {
				t.Errorf("killed at commit %d: said %v", n, err)
			}
		}
	}
}

// TestLargeChangeRefused checks what happens to a change when the store rejects one of its
// commits: before it is decided nothing has happened, afterwards the next leader carries it
// out.
func TestLargeChangeRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse func(objdb.Txn) bool
		want   bool
	}{
		"a piece":      {func(txn objdb.Txn) bool { return writes(txn, stagedKey(3)) }, false},
		"the decision": {func(txn objdb.Txn) bool { return writes(txn, decidedKey) && txn.Then[0].Type == objdb.OpPut }, false},
		"carrying out": {func(txn objdb.Txn) bool { return strings.HasPrefix(txn.Then[0].Key, state.PolicyRuleRoot) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			e, _, stop := lead(t, store)
			e.withRules(t)
			store.OnCommit(func(txn objdb.Txn) memory.Fault {
				if tc.refuse(txn) {
					return memory.Fault{Before: errs.New(errs.Invalid, "the store does not like it")}
				}
				return memory.Fault{}
			})
			err := e.attachPolicy(t.Context())
			store.OnCommit(nil)
			if tc.want != errs.Is(err, errs.Unavailable) || err == nil {
				t.Errorf("said %v", err)
			}
			if tc.want {
				<-e.Done()
				stop()
				e, _, stop = lead(t, store)
			}
			defer stop()
			if says, records := attached(t, store); says != tc.want || says != (records > 0) {
				t.Errorf("attached is %v, with %d records", says, records)
			}
			e.checkConsistent(t)
		})
	}
}

// TestRuleRepair checks that a new leader repairs rule records that somebody has changed,
// and leaves the others alone.
func TestRuleRepair(t *testing.T) {
	store := memory.New()
	e, _, stop := lead(t, store)
	e.withRules(t)
	if err := e.attachPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	id := func(rule int) string {
		return fmt.Sprintf("%sdefault:g:default:p:default:p:%d:inRx", state.PolicyRuleRoot, rule)
	}
	before, err := store.Get(t.Context(), id(7))
	if err != nil {
		t.Fatal(err)
	}
	put(t, store, id(1), `{"RuleId":"other"}`, state.PolicyRuleRoot+"nobody", `{"RuleId":"nobody"}`)
	if _, err := store.Commit(t.Context(), objdb.Txn{Then: []objdb.Op{objdb.Delete(id(2))}}); err != nil {
		t.Fatal(err)
	}
	e, _, stop = lead(t, store)
	defer stop()
	if _, records := attached(t, store); records != 2*manyRules {
		t.Errorf("%d records", records)
	}
	if after, err := store.Get(t.Context(), id(7)); err != nil || after.ModRevision != before.ModRevision {
		t.Errorf("a right record was written again, %v", err)
	}
	e.checkConsistent(t)
}
