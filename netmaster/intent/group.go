package intent

import (
	"slices"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// groupTables are the groups and the records for agents.
type groupTables struct {
	*objects[contivmodel.EndpointGroup, contivmodel.EndpointGroupOper]
	ofTenant    *index[string, contivmodel.EndpointGroup]
	ofNetwork   *index[string, contivmodel.EndpointGroup] // by the network's key
	ofProfile   *index[string, contivmodel.EndpointGroup] // by the net profile's key
	ofPolicy    *index[string, contivmodel.EndpointGroup] // by the policy's key
	ofContracts *index[string, contivmodel.EndpointGroup] // by the contracts group's key
	records     *table[string, state.EndpointGroup]       // by id
}

func registerGroups(m *model) groupTables {
	t := groupTables{objects: register(m, contivmodel.EndpointGroupKind(), lifecycle[contivmodel.EndpointGroup, contivmodel.EndpointGroupOper]{
		create: createGroup,
		update: updateGroup,
		remove: removeGroup,
		view:   m.viewGroup,
		oper:   m.groupOper,
	})}
	t.ofTenant = t.indexed(func(_ string, g *contivmodel.EndpointGroup) string { return g.TenantName })
	t.ofNetwork = t.indexed(func(_ string, g *contivmodel.EndpointGroup) string { return modelKey(g.TenantName, g.NetworkName) })
	t.ofProfile = t.indexedEach(func(_ string, g *contivmodel.EndpointGroup) []string {
		return contivmodel.Keys(g.TenantName, g.NetProfile)
	})
	t.ofPolicy = t.indexedEach(func(_ string, g *contivmodel.EndpointGroup) []string {
		return contivmodel.Keys(g.TenantName, g.Policies...)
	})
	t.ofContracts = t.indexedEach(func(_ string, g *contivmodel.EndpointGroup) []string {
		return contivmodel.Keys(g.TenantName, g.ExtContractsGrps...)
	})
	t.records = records[state.EndpointGroup](m, state.GroupRoot)
	t.records.compact = func(id string, g *state.EndpointGroup) {
		ownKey(id, &g.ID)
		m.texts.share(&g.GroupName, &g.TenantName, &g.NetworkName, &g.PktTagType, &g.Bandwidth)
	}
	return t
}

// createGroup checks a new group against its network and plans its record, its number, its
// address pool and, in ACI mode, its VLAN.
func createGroup(x *tx, g *contivmodel.EndpointGroup) error {
	if _, ok := x.tenants.get(g.TenantName); !ok {
		return errs.New(errs.NotFound, "Tenant not found: %s", g.TenantName)
	}
	netID := state.NetworkID(g.NetworkName, g.TenantName)
	net, ok := x.networks.records.get(netID)
	if _, exists := x.networks.get(modelKey(g.TenantName, g.NetworkName)); !ok || !exists {
		return errs.New(errs.NotFound, "Network not found: %s", modelKey(g.TenantName, g.NetworkName))
	}
	if _, ok := x.networks.get(g.Key); ok {
		return errs.New(errs.Conflict, "Network %s conflicts with the endpoint group name", g.GroupName)
	}
	id := state.GroupID(g.GroupName, g.TenantName)
	pool, err := checkPool(x, g, netID)
	if err != nil {
		return err
	}
	number, ok := x.pools[tags.GroupID].Next()
	if !ok {
		return errs.New(errs.Exhausted, "no endpoint group ids available, %d are in use", tags.MaxGroupID)
	}
	rec := &state.EndpointGroup{
		ID: id, GroupName: g.GroupName, TenantName: g.TenantName, NetworkName: g.NetworkName, EndpointGroupID: number,
		PktTagType: net.PktTagType, PktTag: net.PktTag, ExtPktTag: net.ExtPktTag, IPPool: g.IPPool, GroupTag: g.CfgdTag,
	}
	if rec.GroupTag == "" {
		rec.GroupTag = g.GroupName + "." + g.TenantName
	}
	if err := ownVLAN(x, net, rec); err != nil {
		return err
	}
	if err := x.claimTag(tags.GroupID, number, ownerGroup(id)); err != nil {
		return err
	}
	if pool != nil {
		space := x.spaces[netID]
		space.AddPool(*pool)
		x.onUndo(func() { space.RemovePool(pool.Owner) })
		x.addrs.put(x, claimKey{netID, pool.Range.String()}, &state.AddressClaim{Owner: pool.Owner})
	}
	if err := attach(x, g, rec); err != nil {
		return err
	}
	x.groups.records.put(x, id, rec)
	return expandGroup(x, g, rec)
}

// viewGroup adds the rules that name the group, and its app profile: of several, the one
// written last.
func (m *model) viewGroup(g *contivmodel.EndpointGroup) {
	var last int64
	for _, key := range sortedKeys(m.apps.ofGroup, g.Key) {
		if rev := m.apps.base[key].rev; rev >= last {
			last, g.Links.AppProfile = rev, contivmodel.Link{Type: contivmodel.AppProfileType, Key: key}
		}
	}
	g.LinkSets.MatchRules = contivmodel.NewLinkSet(contivmodel.RuleType, sortedKeys(m.rules.onGroup, g.Key))
}

// checkPool returns the pool requested by a group, nil if it requests none.
func checkPool(x *tx, g *contivmodel.EndpointGroup, netID string) (*ipam.Pool, error) {
	if g.IPPool == "" {
		return nil, nil
	}
	r, _ := contivmodel.ParseRange(g.IPPool) // its form has been checked
	s := x.spaces[netID]
	if s == nil {
		return nil, errs.New(errs.Internal, "network %s has no address space", netID)
	}
	if err := s.CheckPool(r); err != nil {
		return nil, err
	}
	return &ipam.Pool{Owner: ownerGroup(state.GroupID(g.GroupName, g.TenantName)), Range: r}, nil
}

// ownVLAN assigns a VLAN to a group in ACI mode, where the fabric distinguishes groups, not
// networks.
func ownVLAN(x *tx, net *state.Network, rec *state.EndpointGroup) error {
	if !inACI(x) {
		return nil
	}
	if net.PktTagType != state.EncapVLAN {
		return errs.New(errs.Invalid, "network type must be VLAN for ACI mode: network %s is %s", net.ID, net.PktTagType)
	}
	tag, err := pickVLAN(x, 0)
	if err != nil {
		return err
	}
	rec.PktTag = tag
	return x.claimTag(tags.VLAN, tag, ownerGroup(rec.ID))
}

// attach checks that everything a group refers to exists, copies the net profile's values
// to the group's record, and plans the group with its links.
func attach(x *tx, g *contivmodel.EndpointGroup, rec *state.EndpointGroup) error {
	for _, key := range contivmodel.Keys(g.TenantName, g.Policies...) {
		if _, ok := x.policies.get(key); !ok {
			return errs.New(errs.NotFound, "Policy not found: %s", key)
		}
	}
	if slices.Contains(g.Policies, "") {
		return errs.New(errs.Invalid, "Policy not found: policies has an empty name")
	}
	var p contivmodel.Netprofile
	if g.NetProfile != "" {
		found, ok := x.profiles.get(modelKey(g.TenantName, g.NetProfile))
		if !ok {
			return errs.New(errs.NotFound, "netprofile not found: %s", modelKey(g.TenantName, g.NetProfile))
		}
		p = *found
	}
	setProfile(rec, &p)
	for _, name := range g.ExtContractsGrps {
		if _, ok := x.contracts.get(modelKey(g.TenantName, name)); !ok {
			return errs.New(errs.NotFound, "External contracts group %s not found", name)
		}
	}
	x.groups.put(x, g.Key, g)
	return nil
}

// updateGroup replaces what a group refers to; its network and tenant cannot change. The
// configured tag of an update is ignored.
func updateGroup(x *tx, old, g *contivmodel.EndpointGroup) error {
	if g.NetworkName != old.NetworkName {
		return errs.New(errs.Invalid, "cannot change network association of endpoint group %s from %s to %s", g.Key, old.NetworkName, g.NetworkName)
	}
	if g.IPPool != old.IPPool {
		return errs.New(errs.Invalid, "cannot change the ip pool of endpoint group %s from %q to %q", g.Key, old.IPPool, g.IPPool)
	}
	id := state.GroupID(g.GroupName, g.TenantName)
	before, ok := x.groups.records.get(id)
	if !ok {
		return errs.New(errs.Internal, "endpoint group %s has no record", g.Key)
	}
	upd, rec := *old, *before
	upd.Policies, upd.NetProfile, upd.ExtContractsGrps = g.Policies, g.NetProfile, g.ExtContractsGrps
	if err := attach(x, &upd, &rec); err != nil {
		return err
	}
	if rec != *before {
		x.groups.records.put(x, id, &rec)
	}
	if err := checkFabric(x, appsWith(x, upd.Key)...); err != nil {
		return err
	}
	withdrawGroup(x, old, func(policy string) bool { return !slices.Contains(upd.Policies, policy) })
	return expandGroup(x, &upd, &rec)
}

// removeGroup fails while the group has endpoints, and plans the removal of everything the
// group owns.
func removeGroup(x *tx, g *contivmodel.EndpointGroup) error {
	id, netID := state.GroupID(g.GroupName, g.TenantName), state.NetworkID(g.NetworkName, g.TenantName)
	if blockers := names(x.apps.where(x.apps.ofGroup, g.Key), keyOf[contivmodel.AppProfile]); blockers != "" {
		return errs.New(errs.InUse, "cannot delete endpoint group %s: it is in app profiles %s", g.Key, blockers)
	}
	if blockers := names(x.endpoints.where(x.endpoints.ofGroup, id), endpointName); blockers != "" {
		return errs.New(errs.InUse, "EPG %s has active endpoints: %s", g.GroupName, blockers)
	}
	if blockers := names(x.rules.where(x.rules.onGroup, g.Key), keyOf[contivmodel.Rule]); blockers != "" {
		return errs.New(errs.InUse, "cannot delete endpoint group %s: it is named by rules: %s", g.Key, blockers)
	}
	withdrawGroup(x, g, func(string) bool { return true })
	owner := ownerGroup(id)
	if rec, ok := x.groups.records.get(id); ok {
		x.freeTag(tags.GroupID, rec.EndpointGroupID, owner)
		if rec.PktTagType == state.EncapVLAN {
			x.freeTag(tags.VLAN, rec.PktTag, owner)
		}
		x.groups.records.del(x, id)
	}
	if r, ok := contivmodel.ParseRange(g.IPPool); ok {
		x.addrs.del(x, claimKey{netID, r.String()})
		if s := x.spaces[netID]; s != nil {
			s.RemovePool(owner)
			x.onUndo(func() { s.AddPool(ipam.Pool{Owner: owner, Range: r}) })
		}
	}
	return nil
}

func (m *model) groupOper(g *contivmodel.EndpointGroup, hosts vteps) (contivmodel.EndpointGroupOper, error) {
	id := state.GroupID(g.GroupName, g.TenantName)
	rec, ok := m.groups.records.base[id]
	if !ok {
		return contivmodel.EndpointGroupOper{}, errs.New(errs.NotFound, "key not found: endpoint group %s", id)
	}
	oper := contivmodel.EndpointGroupOper{
		Endpoints:      m.endpointOpers(m.endpoints.ofGroup, id, hosts),
		ExternalPktTag: rec.v.ExtPktTag,
		GroupTag:       rec.v.GroupTag,
		PktTag:         rec.v.PktTag,
	}
	oper.NumEndpoints = len(oper.Endpoints)
	pool, ok := contivmodel.ParseRange(g.IPPool)
	net, exists := m.networks.base[modelKey(g.TenantName, g.NetworkName)]
	if !ok || !exists {
		return oper, nil
	}
	cfg, err := addressing(net.v)
	if err != nil {
		return oper, err
	}
	var taken []contivmodel.Range
	for k := range m.addrs.ofNetwork.under(cfg.Name) {
		if r, ok := contivmodel.ParseRange(k.what); ok && !isGroupOwner(m.addrs.base[k].v.Owner) {
			taken = append(taken, r)
		}
	}
	cfg.Subnet.Range = pool
	oper.AllocatedIPAddresses, oper.AvailableIPAddresses = ipam.Report(cfg.Subnet, taken)
	return oper, nil
}

func isGroupOwner(owner string) bool { return strings.HasPrefix(owner, "group/") }

// inACI reports whether the fabric is driven by ACI.
func inACI(x *tx) bool {
	g, ok := x.globals.get(contivmodel.GlobalName)
	return ok && g.NetworkInfraType == contivmodel.InfraACI
}
