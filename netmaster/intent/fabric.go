package intent

import (
	"iter"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/aci"
	"github.com/contiv/netplugin/state"
)

// FabricProfiles returns the configuration of an ACI fabric's gateway, by app profile key;
// empty unless the fabric is one.
func (e *Engine) FabricProfiles() map[string]aci.Profile {
	m := e.model
	m.mu.RLock()
	defer m.mu.RUnlock()
	x := m.committed()
	profiles := map[string]aci.Profile{}
	if !inACI(x) {
		return profiles
	}
	for key, app := range x.apps.all() {
		p, err := aci.NewProfile(fabricView{x}, app)
		if err != nil {
			e.cfg.Log.WithField("appProfile", key).WithError(err).Error("the app profile cannot be fully expressed on an ACI fabric")
		}
		profiles[key] = p
	}
	return profiles
}

// Changed returns a channel that is closed with the next commit.
func (e *Engine) Changed() <-chan struct{} {
	e.model.mu.RLock()
	defer e.model.mu.RUnlock()
	return e.model.changed.Next()
}

// checkFabric checks that an ACI gateway understands app profiles.
func checkFabric(x *tx, apps ...*contivmodel.AppProfile) error {
	if !inACI(x) {
		return nil
	}
	for _, app := range apps {
		if _, err := aci.NewProfile(fabricView{x}, app); err != nil {
			return err
		}
	}
	return nil
}

// appsWith returns the app profiles of a group.
func appsWith(x *tx, group string) []*contivmodel.AppProfile {
	var apps []*contivmodel.AppProfile
	for _, app := range x.apps.where(x.apps.ofGroup, group) {
		apps = append(apps, app)
	}
	return apps
}

// fabricView adapts a transaction to package aci.
type fabricView struct{ x *tx }

// Gateway implements aci.View.
func (v fabricView) Gateway() (*contivmodel.AciGw, bool) {
	return v.x.gateways.get(contivmodel.AciGwName)
}

// Group implements aci.View.
func (v fabricView) Group(key string) (*contivmodel.EndpointGroup, bool) { return v.x.groups.get(key) }

// Records implements aci.View.
func (v fabricView) Records(g *contivmodel.EndpointGroup) (*state.EndpointGroup, *state.Network, bool) {
	group, ok := v.x.groups.records.get(groupID(g))
	net, exists := v.x.networks.records.get(state.NetworkID(g.NetworkName, g.TenantName))
	return group, net, ok && exists
}

// Contracts implements aci.View.
func (v fabricView) Contracts(key string) (*contivmodel.ExtContractsGroup, bool) {
	return v.x.contracts.get(key)
}

// RulesOf implements aci.View.
func (v fabricView) RulesOf(policy string) iter.Seq2[string, *contivmodel.Rule] {
	return v.enforced(v.x.rules.where(v.x.rules.ofPolicy, policy))
}

// RulesNaming implements aci.View.
func (v fabricView) RulesNaming(group string) iter.Seq2[string, *contivmodel.Rule] {
	return v.enforced(v.x.rules.where(v.x.rules.onGroup, group))
}

// enforced leaves out rules in audit mode: the fabric does not log.
func (v fabricView) enforced(rules iter.Seq2[string, *contivmodel.Rule]) iter.Seq2[string, *contivmodel.Rule] {
	return func(yield func(string, *contivmodel.Rule) bool) {
		for key, r := range rules {
			if !v.x.audits(r) && !yield(key, r) {
				return
			}
		}
	}
}
