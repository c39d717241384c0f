package intent

import (
	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/policy"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// ruleTables are the rules and the records for agents.
type ruleTables struct {
	*objects[contivmodel.Rule, contivmodel.NoOper]
	ofPolicy  *index[string, contivmodel.Rule] // by the policy's key
	onGroup   *index[string, contivmodel.Rule] // by the key of the group they name
	onNetwork *index[string, contivmodel.Rule] // by the key of the network they name
	records   *table[string, state.PolicyRule] // by rule id
}

func registerRules(m *model) ruleTables {
	t := ruleTables{objects: register(m, contivmodel.RuleKind(), lifecycle[contivmodel.Rule, contivmodel.NoOper]{
		create: createRule,
		update: func(_ *tx, r, _ *contivmodel.Rule) error {
			return errs.New(errs.Exists, "Can not update a rule after its created: rule %s exists", r.Key)
		},
		remove: removeRule,
	})}
	t.ofPolicy = t.indexed(func(_ string, r *contivmodel.Rule) string { return modelKey(r.TenantName, r.PolicyName) })
	t.onGroup = t.indexedEach(func(_ string, r *contivmodel.Rule) []string {
		return contivmodel.Keys(r.TenantName, r.FromEndpointGroup, r.ToEndpointGroup)
	})
	t.onNetwork = t.indexedEach(func(_ string, r *contivmodel.Rule) []string {
		return contivmodel.Keys(r.TenantName, r.FromNetwork, r.ToNetwork)
	})
	t.records = records[state.PolicyRule](m, state.PolicyRuleRoot)
	t.records.compact = func(id string, r *state.PolicyRule) {
		ownKey(id, &r.RuleID)
		m.texts.share(&r.SrcIPAddr, &r.DstIPAddr, &r.TCPFlags, &r.Action, &r.Mode)
	}
	return t
}

// createRule checks that everything a rule refers to exists, and plans its records for the
// groups that use its policy.
func createRule(x *tx, r *contivmodel.Rule) error {
	if err := checkNamed(x, r); err != nil {
		return err
	}
	key := modelKey(r.TenantName, r.PolicyName)
	if _, ok := x.policies.get(key); !ok {
		return errs.New(errs.NotFound, "Policy not found: %s", key)
	}
	if r.Direction == contivmodel.DirectionIn && r.ToIPAddress != "" {
		if err := checkLocalAddress(x, r, key); err != nil {
			return err
		}
	}
	x.rules.put(x, r.Key, r)
	for _, g := range x.groups.where(x.groups.ofPolicy, key) {
		if err := expandRule(x, r, g); err != nil {
			return err
		}
		if err := checkFabric(x, appsWith(x, g.Key)...); err != nil {
			return err
		}
	}
	return nil
}

// checkNamed checks that the group or network named by a rule exists. It names at most one
// of them.
func checkNamed(x *tx, r *contivmodel.Rule) error {
	for _, name := range []string{r.FromEndpointGroup, r.ToEndpointGroup} {
		if _, ok := x.groups.get(modelKey(r.TenantName, name)); !ok && name != "" {
			return errs.New(errs.NotFound, "EndpointGroup not found: %s", modelKey(r.TenantName, name))
		}
	}
	for _, name := range []string{r.FromNetwork, r.ToNetwork} {
		if _, ok := x.networks.get(modelKey(r.TenantName, name)); !ok && name != "" {
			return errs.New(errs.NotFound, "Network not found: %s", modelKey(r.TenantName, name))
		}
	}
	return nil
}

// checkLocalAddress checks that the local address of an incoming rule is that of an
// endpoint in the only group that uses the policy.
func checkLocalAddress(x *tx, r *contivmodel.Rule, policyKey string) error {
	var under []*contivmodel.EndpointGroup
	for _, g := range x.groups.where(x.groups.ofPolicy, policyKey) {
		under = append(under, g)
	}
	if len(under) != 1 {
		return errs.New(errs.Invalid, "toIpAddress of incoming rule %s: expected exactly one endpoint group under policy %s, there are %d",
			r.Key, policyKey, len(under))
	}
	for _, ep := range x.endpoints.where(x.endpoints.ofGroup, groupID(under[0])) {
		if ep.IPAddress == r.ToIPAddress {
			return nil
		}
	}
	return errs.New(errs.NotFound, "toIpAddress of incoming rule %s: no endpoint of group %s has address %s", r.Key, under[0].Key, r.ToIPAddress)
}

func removeRule(x *tx, r *contivmodel.Rule) error {
	for _, g := range x.groups.where(x.groups.ofPolicy, modelKey(r.TenantName, r.PolicyName)) {
		withdrawRule(x, r, g)
	}
	return nil
}

// Rule records: what agents enforce.

// groupID is the id of a group's record.
func groupID(g *contivmodel.EndpointGroup) string { return state.GroupID(g.GroupName, g.TenantName) }

// expandRule plans the records of a rule for a group that uses its policy. In ACI mode
// there are none, because the fabric enforces policies.
func expandRule(x *tx, r *contivmodel.Rule, g *contivmodel.EndpointGroup) error {
	if inACI(x) {
		return nil
	}
	rec, ok := x.groups.records.get(groupID(g))
	if !ok {
		return errs.New(errs.Internal, "endpoint group %s has no record", g.Key)
	}
	return expand(x, r, g, rec)
}

// expand is expandRule for a group with record rec.
func expand(x *tx, r *contivmodel.Rule, g *contivmodel.EndpointGroup, rec *state.EndpointGroup) error {
	records, err := x.ruleRecords(r, g, rec)
	if err != nil {
		return err
	}
	for i := range records {
		if old, ok := x.rules.records.get(records[i].RuleID); !ok || *old != records[i] {
			x.rules.records.put(x, records[i].RuleID, &records[i])
		}
	}
	return nil
}

// ruleRecords computes the records of a rule for a group. What the rule refers to must
// exist: a record must never match more than its rule.
func (x *tx) ruleRecords(r *contivmodel.Rule, g *contivmodel.EndpointGroup, rec *state.EndpointGroup) ([]state.PolicyRule, error) {
	s := policy.Subject{Rule: r, Group: g.Key, Number: rec.EndpointGroupID, Audit: x.audits(r), AuditFile: x.filed(r)}
	for _, key := range contivmodel.Keys(r.TenantName, r.FromEndpointGroup, r.ToEndpointGroup) {
		peer, ok := x.groups.get(key)
		if !ok {
			return nil, errs.New(errs.NotFound, "EndpointGroup not found: %s, named by rule %s", key, r.Key)
		}
		number := rec.EndpointGroupID
		if key != g.Key {
			other, ok := x.groups.records.get(groupID(peer))
			if !ok {
				return nil, errs.New(errs.Internal, "endpoint group %s has no record", key)
			}
			number = other.EndpointGroupID
		}
		s.Remote = number
	}
	for _, name := range []string{r.FromNetwork, r.ToNetwork} {
		if name == "" {
			continue
		}
		space := x.spaces[state.NetworkID(name, r.TenantName)]
		if space == nil {
			return nil, errs.New(errs.NotFound, "Network not found: %s, named by rule %s", modelKey(r.TenantName, name), r.Key)
		}
		s.Network = space.Config().Subnet.Prefix.String()
		if six := space.Config().Subnet6; six.IsValid() {
			s.Network6 = six.Masked().String()
		}
	}
	return policy.Expand(s), nil
}

// audits reports whether a rule decides nothing: its own mode counts before its policy's.
func (x *tx) audits(r *contivmodel.Rule) bool {
	mode := r.Mode
	if p, ok := x.policies.get(modelKey(r.TenantName, r.PolicyName)); ok && mode == "" {
		mode = p.Mode
	}
	return mode == contivmodel.ModeAudit
}

// filed reports whether what a rule decides goes to the hosts' audit files.
func (x *tx) filed(r *contivmodel.Rule) bool {
	p, ok := x.policies.get(modelKey(r.TenantName, r.PolicyName))
	return ok && p.Audit
}

// withdrawRule plans the removal of a rule's records for a group.
func withdrawRule(x *tx, r *contivmodel.Rule, g *contivmodel.EndpointGroup) {
	for _, name := range policy.Names() {
		id := policy.RuleID(g.Key, r, name)
		if _, ok := x.rules.records.get(id); ok {
			x.rules.records.del(x, id)
		}
	}
}

// expandGroup plans the records of all rules of a group's policies; existing ones are not
// written again.
func expandGroup(x *tx, g *contivmodel.EndpointGroup, rec *state.EndpointGroup) error {
	if inACI(x) {
		return nil
	}
	for _, key := range contivmodel.Keys(g.TenantName, g.Policies...) {
		for _, r := range x.rules.where(x.rules.ofPolicy, key) {
			if err := expand(x, r, g, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// withdrawGroup plans the removal of a group's records for the policies selected by gone.
func withdrawGroup(x *tx, g *contivmodel.EndpointGroup, gone func(policy string) bool) {
	for _, name := range g.Policies {
		if !gone(name) {
			continue
		}
		for _, r := range x.rules.where(x.rules.ofPolicy, modelKey(g.TenantName, name)) {
			withdrawRule(x, r, g)
		}
	}
}
