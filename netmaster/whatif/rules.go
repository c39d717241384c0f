package whatif

import (
	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/judge"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/state/flowapi"
)

// Rules are the rules of all tenants at one time.
type Rules struct {
	byTenant map[string]*ruleList
	groups   map[string]int // numbers, by id: <group>:<tenant>
}

// ruleList is the rules of a tenant, with their records in the same order.
type ruleList struct {
	rules   []ofnet.Rule
	records []state.PolicyRule
}

// NewRules makes Rules of records, and of the numbers of groups by id. Records that agents
// would not take are left out, as agents do, and so are rules in audit mode.
func NewRules(records []state.PolicyRule, groups map[string]int) *Rules {
	r := &Rules{byTenant: map[string]*ruleList{}, groups: groups}
	for _, rec := range records {
		rule, err := drivers.RuleOf(rec)
		if err != nil || rule.Audit {
			continue
		}
		list := r.byTenant[rule.Tenant]
		if list == nil {
			list = &ruleList{}
			r.byTenant[rule.Tenant] = list
		}
		list.rules, list.records = append(list.rules, rule.Rule), append(list.records, rec)
	}
	return r
}

// group returns the number of a group of a tenant; 0: there is none of that name.
func (r *Rules) group(name, tenant string) uint32 {
	return uint32(r.groups[state.GroupID(name, tenant)])
}

// Judge says what the rules of a tenant decide about a connection, and by what.
func (r *Rules) Judge(tenant string, c judge.Connection) flowapi.Decision {
	list := r.byTenant[tenant]
	if list == nil {
		return flowapi.Decision{By: flowapi.ByDefault, Verdict: flowapi.Allowed}
	}
	verdict, by := judge.Rules(list.rules, c)
	if by < 0 {
		return flowapi.Decision{By: flowapi.ByDefault, Verdict: flowapi.Allowed}
	}
	d := flowapi.Decision{By: flowapi.ByRule, Verdict: flowapi.Verdict(verdict.String())}
	d.Policy, d.Rule = list.records[by].Names()
	return d
}

// recorded is the connection of a record, as rules see it; ok is false for one that rules are
// not about.
func (r *Rules) recorded(rec *flowapi.Record) (c judge.Connection, ok bool) {
	proto, ok := flowapi.ProtoNumber(rec.Proto)
	if !ok || !rec.Src.Address.IsValid() || !rec.Dst.Address.IsValid() {
		return c, false
	}
	c = judge.Connection{Src: rec.Src.Address, Dst: rec.Dst.Address, Proto: proto, SrcPort: rec.Src.Port, DstPort: rec.Dst.Port}
	c.SrcGroup, c.DstGroup = r.groupOf(rec, rec.Src), r.groupOf(rec, rec.Dst)
	return c, true
}

func (r *Rules) groupOf(rec *flowapi.Record, e flowapi.End) uint32 {
	if e.Group == "" || e.Tenant != "" && e.Tenant != rec.Tenant {
		return 0
	}
	return r.group(e.Group, rec.Tenant)
}
