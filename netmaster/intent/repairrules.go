package intent

import (
	"maps"
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/state"
)

// wrongRules returns repairs of rule records that are missing, superfluous or do not match
// rules and groups. Agents would not enforce what users want, so these records are
// replaced. A rule that refers to something deleted stays without records: it must not
// match more than it says.
func (l *loader) wrongRules() []step {
	m := l.model
	x := &tx{model: m}
	want := map[string]state.PolicyRule{}
	if !inACI(x) {
		for _, key := range slices.Sorted(maps.Keys(m.rules.base)) {
			r := m.rules.base[key].v
			for _, g := range m.groups.where(m.groups.ofPolicy, modelKey(r.TenantName, r.PolicyName)) {
				rec, ok := m.groups.records.base[groupID(g)]
				if !ok {
					continue
				}
				records, err := x.ruleRecords(r, g, rec.v)
				if err != nil {
					l.log.WithField("rule", key).WithError(err).Error("a rule cannot be enforced")
				}
				for _, rec := range records {
					want[rec.RuleID] = rec
				}
			}
		}
	}
	var steps []step
	for id, rec := range want {
		if m.unreadable[state.PolicyRuleRoot+id] != "" {
			continue
		}
		if old, ok := m.rules.records.base[id]; !ok || *old.v != rec {
			l.log.WithField("rule", id).Error("a rule record does not match its rule; rewriting it")
			steps = append(steps, func(x *tx) { x.rules.records.put(x, id, &rec) })
		}
	}
	for id := range m.rules.records.base {
		if _, ok := want[id]; !ok && !l.unknownRule(id) {
			l.log.WithField("rule", id).Error("removing a rule record that belongs to no rule")
			steps = append(steps, func(x *tx) { x.rules.records.del(x, id) })
		}
	}
	return steps
}

// unknownRule reports whether a rule record cannot be checked, because its rule or its
// group is unreadable. Such a record stays: it may deny something.
func (l *loader) unknownRule(id string) bool {
	parts := strings.Split(id, ":") // tenant, group, tenant, policy, tenant, policy, rule, name
	if len(parts) != 8 {
		return false
	}
	for _, key := range []string{
		state.ModelRoot + contivmodel.RuleType + "/" + strings.Join(parts[4:7], ":"),
		state.ModelRoot + contivmodel.EndpointGroupType + "/" + modelKey(parts[0], parts[1]),
		state.GroupRoot + state.GroupID(parts[1], parts[0]),
	} {
		if l.model.unreadable[key] != "" {
			return true
		}
	}
	return false
}
