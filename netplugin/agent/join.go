package agent

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
)

// apply declares one batch.
func (a *Agent) apply(batch objdb.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if batch.Snapshot {
		a.forgetMissing(batch)
	}
	// Deletions of endpoints first: an address may have moved from one to another, and the rules of a
	// tenant that leaves this host go after its last endpoint.
	for _, ev := range batch.Events {
		if ev.Deleted && strings.HasPrefix(ev.KV.Key, state.EndpointRoot) {
			a.removeEndpoint(strings.TrimPrefix(ev.KV.Key, state.EndpointRoot))
		}
	}
	for _, ev := range batch.Events {
		a.applyShared(ev)
	}
	// Endpoints of this host last: with the first one of a tenant its flows are made, and an endpoint
	// that is known counts as realised once these are.
	var own []state.Endpoint
	for _, ev := range batch.Events {
		if !ev.Deleted && strings.HasPrefix(ev.KV.Key, state.EndpointRoot) {
			applyEvent(a, ev, state.EndpointRoot, func(rec state.Endpoint) {
				if rec.HomingHost == a.cfg.HostLabel {
					own = append(own, rec)
					return
				}
				a.setEndpoint(rec)
			}, a.removeEndpoint)
		}
	}
	if len(own) > 0 {
		a.declareServices()
	}
	for _, rec := range own {
		a.setEndpoint(rec)
	}
	a.declareServices()
	a.revision = batch.Revision
	if batch.Snapshot && !a.loaded {
		a.loaded = true
		a.cfg.Log.WithFields(logrus.Fields{
			"revision": batch.Revision, "networks": len(a.networks), "endpoints": len(a.endpoints), "hosts": len(a.hosts),
		}).Info("state loaded")
		a.synced()
	}
	a.broadcast()
}

// applyShared declares an event of any kind but endpoints, which need the others to be known.
func (a *Agent) applyShared(ev objdb.Event) {
	switch {
	case strings.HasPrefix(ev.KV.Key, state.NetworkRoot):
		applyEvent(a, ev, state.NetworkRoot, a.setNetwork, a.removeNetwork)
	case strings.HasPrefix(ev.KV.Key, state.HostRoot):
		applyEvent(a, ev, state.HostRoot, a.setHost, a.removeHost)
	case strings.HasPrefix(ev.KV.Key, state.GroupRoot):
		applyEvent(a, ev, state.GroupRoot, a.setGroup, a.removeGroup)
	case strings.HasPrefix(ev.KV.Key, state.PolicyRuleRoot):
		applyEvent(a, ev, state.PolicyRuleRoot, a.setRule, a.removeRule)
	case strings.HasPrefix(ev.KV.Key, state.ServiceLBRoot):
		applyEvent(a, ev, state.ServiceLBRoot, a.setService, a.removeService)
	case strings.HasPrefix(ev.KV.Key, state.ProviderRoot):
		applyEvent(a, ev, state.ProviderRoot, a.setProviders, a.removeProviders)
	case strings.HasPrefix(ev.KV.Key, state.BgpRoot):
		applyEvent(a, ev, state.BgpRoot, a.setBgp, a.removeBgp)
	}
}

// forgetMissing removes what a snapshot does not contain.
func (a *Agent) forgetMissing(batch objdb.Batch) {
	present := make(map[string]struct{}, len(batch.Events))
	for _, ev := range batch.Events {
		present[ev.KV.Key] = struct{}{}
	}
	forget(present, state.EndpointRoot, a.endpoints, a.removeEndpoint)
	forget(present, state.NetworkRoot, a.networks, a.removeNetwork)
	forget(present, state.HostRoot, a.hosts, a.removeHost)
	forget(present, state.GroupRoot, a.groups, a.removeGroup)
	forget(present, state.PolicyRuleRoot, a.rules, a.removeRule)
	forget(present, state.ServiceLBRoot, a.services.records, a.removeService)
	forget(present, state.ProviderRoot, a.services.lists, a.removeProviders)
	forget(present, state.BgpRoot, a.links, a.removeBgp)
}

// forget removes the objects of one kind, by id, whose keys are not present.
func forget[V any](present map[string]struct{}, prefix string, known map[string]V, remove func(id string)) {
	for id := range known {
		if _, ok := present[prefix+id]; !ok {
			remove(id)
		}
	}
}

func applyEvent[T any](a *Agent, ev objdb.Event, prefix string, set func(T), remove func(string)) {
	if ev.Deleted {
		remove(strings.TrimPrefix(ev.KV.Key, prefix))
		return
	}
	var v T
	if err := json.Unmarshal(ev.KV.Value, &v); err != nil {
		a.cfg.Log.WithError(err).WithField("key", ev.KV.Key).Error("an unreadable record is ignored")
		return
	}
	set(v)
}

func (a *Agent) setNetwork(rec state.Network) {
	n, err := asNetwork(rec)
	if err != nil {
		a.cfg.Log.WithError(err).Error("a network is ignored")
		return
	}
	a.records[n.ID] = rec
	if a.networks[n.ID] == n {
		return
	}
	a.networks[n.ID] = n
	a.cfg.Driver.Apply(n)
	for id := range a.byNetwork[n.ID] {
		a.declare(id)
	}
}

// setGroup stores a group and applies its QoS to its endpoints.
func (a *Agent) setGroup(g state.EndpointGroup) {
	if _, err := asQoS(g); err != nil {
		a.cfg.Log.WithError(err).Error("a part of a group's quality of service is ignored")
	}
	old := a.groups[g.ID]
	a.groups[g.ID] = g
	if old.DSCP != g.DSCP || old.Bandwidth != g.Bandwidth || old.Burst != g.Burst || old.PktTag != g.PktTag {
		a.declareGroup(g.ID)
	}
}

func (a *Agent) removeGroup(id string) {
	delete(a.groups, id)
	a.declareGroup(id)
}

// declareGroup declares the endpoints of this host that are in a group.
func (a *Agent) declareGroup(id string) {
	for ep := range a.byGroup[id] {
		if a.endpoints[ep].HomingHost == a.cfg.HostLabel {
			a.declare(ep)
		}
	}
}

func (a *Agent) setRule(rec state.PolicyRule) {
	r, err := drivers.RuleOf(rec)
	if err != nil {
		a.cfg.Log.WithError(err).Error("a rule is ignored")
		a.removeRule(rec.RuleID)
		return
	}
	a.rules[r.ID] = struct{}{}
	a.cfg.Driver.Apply(r)
}

func (a *Agent) removeRule(id string) {
	if _, ok := a.rules[id]; ok {
		delete(a.rules, id)
		a.cfg.Driver.Delete(drivers.KindRule, id)
	}
}

// removeNetwork removes a network. Endpoints still in it are removed too: netmaster
// deletes them first, so this concerns orphans only.
func (a *Agent) removeNetwork(id string) {
	delete(a.networks, id)
	delete(a.records, id)
	for ep := range a.byNetwork[id] {
		a.cfg.Driver.Delete(drivers.KindEndpoint, ep)
	}
	a.cfg.Driver.Delete(drivers.KindNetwork, id)
}

func (a *Agent) setHost(rec state.Host) {
	vtep, err := netip.ParseAddr(rec.VtepIP)
	if err != nil {
		a.cfg.Log.WithError(err).WithField("host", rec.ID).Error("a host with an unreadable tunnel address is ignored")
		return
	}
	if rec.ID == a.cfg.HostLabel {
		a.kickHost()
	} else {
		a.compareMTU(rec)
	}
	addrs := hostAddresses(rec)
	a.cfg.Driver.Apply(drivers.Host{Label: rec.ID, VTEP: vtep, Addresses: addrs})
	if a.hosts[rec.ID] == vtep {
		return
	}
	a.hosts[rec.ID] = vtep
	for id := range a.byHost[rec.ID] {
		a.declare(id)
	}
}

// hostAddresses are all addresses in a host's record; what is not an address is left
// out.
func hostAddresses(rec state.Host) []netip.Addr {
	var out []netip.Addr
	for _, s := range append([]string{rec.VtepIP, rec.CtrlIP}, rec.Addresses...) {
		if addr, err := netip.ParseAddr(s); err == nil && !slices.Contains(out, addr.Unmap()) {
			out = append(out, addr.Unmap())
		}
	}
	return out
}

// removeHost forgets a host; its endpoints lose their tunnel address.
func (a *Agent) removeHost(label string) {
	delete(a.hosts, label)
	a.cfg.Driver.Delete(drivers.KindHost, label)
	if label == a.cfg.HostLabel {
		a.kickHost()
	}
	for id := range a.byHost[label] {
		a.declare(id)
	}
}

func (a *Agent) setEndpoint(rec state.Endpoint) {
	if old, ok := a.endpoints[rec.ID]; ok && (old.NetID != rec.NetID || old.HomingHost != rec.HomingHost || old.EndpointGroupKey != rec.EndpointGroupKey) {
		a.unindex(old)
	}
	a.endpoints[rec.ID] = rec
	index(a.byNetwork, rec.NetID, rec.ID)
	index(a.byHost, rec.HomingHost, rec.ID)
	index(a.byGroup, rec.EndpointGroupKey, rec.ID)
	a.declare(rec.ID)
	a.providerChanged(rec.ID)
	if rec.HomingHost == a.cfg.HostLabel {
		a.oper.wake()
	}
}

func (a *Agent) removeEndpoint(id string) {
	rec, ok := a.endpoints[id]
	if !ok {
		return
	}
	a.unindex(rec)
	delete(a.endpoints, id)
	a.providerChanged(id)
	a.cfg.Driver.Delete(drivers.KindEndpoint, id)
	if rec.HomingHost == a.cfg.HostLabel {
		a.oper.wake()
	}
}

// declare declares an endpoint to the driver once its network and host are known.
func (a *Agent) declare(id string) {
	rec := a.endpoints[id]
	n, ok := a.networks[rec.NetID]
	if !ok {
		return // the network's record declares it when it comes
	}
	vtep := a.hosts[rec.HomingHost]
	if n.Encap == ofnet.VLAN && a.onOtherLink(rec.HomingHost) {
		vtep = netip.Addr{}
	}
	ep, err := asEndpoint(rec, n, rec.HomingHost == a.cfg.HostLabel, vtep)
	if err != nil {
		a.cfg.Log.WithError(err).Error("an endpoint is ignored")
		return
	}
	if ep.Local {
		group := a.groups[rec.EndpointGroupKey]
		ep.QoS, _ = asQoS(group) // complained about with the group
		if tag := uint16(group.PktTag); n.Encap == ofnet.VLAN && group.PktTagType == state.EncapVLAN && tag != n.Tag {
			ep.Tag = tag
		}
	}
	a.cfg.Driver.Apply(ep)
}

func index(m map[string]map[string]struct{}, key, id string) {
	if m[key] == nil {
		m[key] = map[string]struct{}{}
	}
	m[key][id] = struct{}{}
}

func (a *Agent) unindex(rec state.Endpoint) {
	for m, key := range map[*map[string]map[string]struct{}]string{&a.byNetwork: rec.NetID, &a.byHost: rec.HomingHost, &a.byGroup: rec.EndpointGroupKey} {
		delete((*m)[key], rec.ID)
		if len((*m)[key]) == 0 {
			delete(*m, key)
		}
	}
}
