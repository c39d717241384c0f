package intent

import (
	"encoding/json"
	"net/netip"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/ipam"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// networkTables are the networks and the records for agents.
type networkTables struct {
	*objects[contivmodel.Network, contivmodel.NetworkOper]
	ofTenant *index[string, contivmodel.Network]
	records  *table[string, state.Network] // by id
}

func registerNetworks(m *model) networkTables {
	t := networkTables{objects: register(m, contivmodel.NetworkKind(), lifecycle[contivmodel.Network, contivmodel.NetworkOper]{
		create: createNetwork,
		update: func(_ *tx, n, _ *contivmodel.Network) error {
			return errs.New(errs.Exists, "cannot change network parameters after creation: network %s exists", n.Key)
		},
		remove: removeNetwork,
		admin: func(n *contivmodel.Network) (string, bool) {
			return "infra network " + n.Key, n.NwType == state.NetworkInfra
		},
		view: m.viewNetwork,
		oper: m.networkOper,
	})}
	t.ofTenant = t.indexed(func(_ string, n *contivmodel.Network) string { return n.TenantName })
	t.records = newTable[string, state.Network](func(id string) string { return state.NetworkRoot + id })
	t.records.compact = func(id string, n *state.Network) {
		ownKey(id, &n.ID)
		m.texts.share(&n.ID, &n.Tenant, &n.NetworkName, &n.PktTagType, &n.SubnetIP, &n.Gateway, &n.IPAddrRange)
	}
	addTable(m, state.NetworkRoot, t.records, (*loader).network)
	return t
}

// network reads a record and creates the network's address space.
func (l *loader) network(id string, kv objdb.KV) error {
	rec := new(state.Network)
	if err := json.Unmarshal(kv.Value, rec); err != nil {
		return err
	}
	if rec.ID != id {
		return errs.New(errs.Invalid, "network under id %s has id %q", id, rec.ID)
	}
	cfg, err := spaceConfig(rec)
	if err != nil {
		return err
	}
	id = rec.ID // not the whole key
	l.model.networks.records.load(id, rec, kv.ModRevision)
	l.model.openSpace(rec.Tenant, id, rec.NetworkName, ipam.New(cfg))
	return nil
}

// createNetwork checks a new network against the settings and its tenant's other
// networks, and plans its record, its tags and the reservation of its gateways.
func createNetwork(x *tx, n *contivmodel.Network) error {
	if err := settingsReady(x, n.Encap); err != nil {
		return err
	}
	if _, ok := x.tenants.get(n.TenantName); !ok {
		return errs.New(errs.NotFound, "Tenant not found: %s", n.TenantName)
	}
	cfg, err := addressing(n)
	if err != nil {
		return err
	}
	if err := checkOverlap(x, n, cfg); err != nil {
		return err
	}
	if _, ok := x.groups.get(n.Key); ok {
		return errs.New(errs.Conflict, "EndpointGroup %s conflicts with the network name", n.NetworkName)
	}
	id := state.NetworkID(n.NetworkName, n.TenantName)
	if other, ok := x.networks.records.get(id); ok {
		return errs.New(errs.Conflict, "network id %s is taken by network %s of tenant %s", id, other.NetworkName, other.Tenant)
	}
	if err := checkGateways(n, cfg); err != nil {
		return err
	}
	rec := &state.Network{
		ID: id, Tenant: n.TenantName, NetworkName: n.NetworkName, Settings: n.Settings, PktTagType: n.Encap,
		SubnetIP: cfg.Subnet.Prefix.Addr().String(), SubnetLen: uint(cfg.Subnet.Prefix.Bits()),
		Gateway: n.Gateway, IPAddrRange: cfg.Subnet.Range.String(), NetworkTag: n.CfgdTag,
	}
	if rec.NetworkTag == "" {
		rec.NetworkTag = id
	}
	if cfg.Subnet6.IsValid() {
		rec.IPv6Subnet, rec.IPv6Len = cfg.Subnet6.Addr().String(), uint(cfg.Subnet6.Bits())
		if gw, ok := contivmodel.ParseIP6(n.IPv6Gateway); ok {
			rec.IPv6Gateway = gw.String()
		}
	}
	if err := assignTags(x, n, rec); err != nil {
		return err
	}
	x.networks.put(x, n.Key, n)
	x.networks.records.put(x, id, rec)
	x.openSpace(n.TenantName, id, n.NetworkName, ipam.New(cfg))
	x.onUndo(func() { x.closeSpace(n.TenantName, id, n.NetworkName) })
	for _, gw := range []string{rec.Gateway, rec.IPv6Gateway} {
		if gw == "" {
			continue
		}
		if err := x.claimAddress(id, gw, ownerGateway); err != nil {
			return err
		}
	}
	return nil
}

// settingsReady reports why the global settings do not allow networks yet.
func settingsReady(x *tx, encap string) error {
	g, ok := x.globals.get(contivmodel.GlobalName)
	missing := ""
	switch {
	case !ok:
		missing = "object global does not exist"
	case g.FwdMode == "":
		missing = "fwdMode is not set"
	case encap == state.EncapVLAN && g.Vlans == "":
		missing = "vlans is not set"
	case encap == state.EncapVXLAN && g.Vxlans == "":
		missing = "vxlans is not set"
	default:
		return nil
	}
	return errs.New(errs.Invalid, "Global configuration is not ready: %s", missing)
}

// addressing returns the subnets of a network.
func addressing(n *contivmodel.Network) (ipam.Config, error) {
	cfg := ipam.Config{Name: state.NetworkID(n.NetworkName, n.TenantName)}
	var err error
	if cfg.Subnet, err = contivmodel.ParseSubnet(n.Subnet); err != nil {
		return cfg, err
	}
	if n.IPv6Subnet != "" {
		cfg.Subnet6, _ = contivmodel.ParseCIDR6(n.IPv6Subnet) // its form has been checked
	}
	return cfg, nil
}

// checkOverlap compares with the networks of the same tenant; other tenants may use the
// same addresses. For subnets with a range only the range counts.
func checkOverlap(x *tx, n *contivmodel.Network, cfg ipam.Config) error {
	taken := x.extentsOf[n.TenantName]
	if taken == nil {
		return nil
	}
	if p := cfg.Subnet6; p.IsValid() {
		if other, found := taken.overlap(p.Addr(), lastOf(p)); found {
			return errs.New(errs.Conflict, "network %s conflicts with subnet %s", other, n.IPv6Subnet)
		}
	}
	if other, found := taken.overlap(cfg.Subnet.Range.First, cfg.Subnet.Range.Last); found {
		return errs.New(errs.Conflict, "network %s conflicts with subnet %s", other, n.Subnet)
	}
	return nil
}

// checkGateways checks that gateways are inside their subnets; the range does not matter.
func checkGateways(n *contivmodel.Network, cfg ipam.Config) error {
	for _, gw := range []struct {
		field, addr string
		subnet      netip.Prefix
	}{{"gateway", n.Gateway, cfg.Subnet.Prefix}, {"ipv6Gateway", n.IPv6Gateway, cfg.Subnet6}} {
		if gw.addr == "" {
			continue
		}
		a, _ := parseAddr(gw.addr)
		switch {
		case !gw.subnet.IsValid():
			return errs.New(errs.Invalid, "%s %s: the network has no such subnet", gw.field, gw.addr)
		case !gw.subnet.Contains(a):
			return errs.New(errs.Invalid, "%s %s is exceeding beyond subnet %s", gw.field, gw.addr, gw.subnet)
		}
	}
	return nil
}

// assignTags claims the VLAN of a vlan network, or the VNI and the local VLAN of a vxlan
// network: the requested tag or the lowest free one.
func assignTags(x *tx, n *contivmodel.Network, rec *state.Network) error {
	owner := ownerNetwork(rec.ID)
	if n.Encap == state.EncapVLAN {
		tag, err := pickVLAN(x, n.PktTag)
		if err != nil {
			return err
		}
		rec.PktTag = tag
		return x.claimTag(tags.VLAN, tag, owner)
	}
	vnis := x.pools[tags.VXLAN]
	vni := n.PktTag
	var ok bool
	switch {
	case vni == 0:
		if vni, ok = vnis.Next(); !ok {
			return errs.New(errs.Exhausted, "no vxlans available in range %s", vnis.Range())
		}
	case !vnis.Range().Contains(vni):
		return errs.New(errs.Invalid, "requested vxlan is out of range - vxlan:%d, range %s", vni, vnis.Range())
	case !vnis.Available(vni):
		return errs.New(errs.Conflict, "requested vxlan not available - vxlan:%d", vni)
	}
	rec.ExtPktTag = vni
	if err := x.claimTag(tags.VXLAN, vni, owner); err != nil {
		return err
	}
	// A local VLAN is only shown to users: if there are more networks than VLANs, the
	// rest have none.
	local, ok := x.pools[tags.Local].Next()
	if !ok {
		return nil
	}
	rec.PktTag = local
	return x.claimTag(tags.Local, local, owner)
}

// pickVLAN returns the requested VLAN if it is free, for 0 the lowest free one.
func pickVLAN(x *tx, want int) (int, error) {
	p := x.pools[tags.VLAN]
	if want != 0 {
		if !p.Available(want) {
			return 0, errs.New(errs.Conflict, "requested vlan not available - vlan:%d, range %s", want, p.Range())
		}
		return want, nil
	}
	tag, ok := p.Next()
	if !ok {
		return 0, errs.New(errs.Exhausted, "no vlans available in range %s", p.Range())
	}
	return tag, nil
}

// removeNetwork fails while the network has groups or endpoints, and plans the removal of
// everything the network owns. Infra networks are removed with their endpoints, which are
// the hosts' own: agents then remove the ports.
func removeNetwork(x *tx, n *contivmodel.Network) error {
	id := state.NetworkID(n.NetworkName, n.TenantName)
	if blockers := names(x.groups.where(x.groups.ofNetwork, n.Key), func(_ string, g *contivmodel.EndpointGroup) string {
		return g.GroupName
	}); blockers != "" {
		return errs.New(errs.InUse, "cannot delete network %s: it has endpoint groups: %s", n.Key, blockers)
	}
	if blockers := names(x.services.where(x.services.ofNetwork, n.Key), keyOf[contivmodel.ServiceLB]); blockers != "" {
		return errs.New(errs.InUse, "cannot delete network %s: it has services: %s", n.Key, blockers)
	}
	if blockers := names(x.rules.where(x.rules.onNetwork, n.Key), keyOf[contivmodel.Rule]); blockers != "" {
		return errs.New(errs.InUse, "cannot delete network %s: it is named by rules: %s", n.Key, blockers)
	}
	if n.NwType == state.NetworkData {
		if blockers := names(x.endpoints.where(x.endpoints.ofNetwork, id), endpointName); blockers != "" {
			return errs.New(errs.InUse, "Network has active endpoints, cannot delete %s: %s", n.Key, blockers)
		}
	} else { // those of hosts, which may be down
		for _, ep := range x.endpoints.where(x.endpoints.ofNetwork, id) {
			x.endpoints.del(x, ep.ID)
		}
	}
	if rec, ok := x.networks.records.get(id); ok {
		owner := ownerNetwork(id)
		if rec.PktTagType == state.EncapVLAN {
			x.freeTag(tags.VLAN, rec.PktTag, owner)
		} else {
			x.freeTag(tags.Local, rec.PktTag, owner)
			x.freeTag(tags.VXLAN, rec.ExtPktTag, owner)
		}
		x.networks.records.del(x, id)
	}
	x.dropPrefix(state.IPAMRoot + id + "/")
	for k := range x.addrs.where(x.addrs.ofNetwork, id) {
		x.addrs.del(x, k)
	}
	x.dropPrefix(state.LateReleasesRt + id + "/")
	for k := range x.late.where(x.late.ofNetwork, id) {
		x.late.del(x, k)
	}
	if s := x.closeSpace(n.TenantName, id, n.NetworkName); s != nil {
		x.onUndo(func() { x.openSpace(n.TenantName, id, n.NetworkName, s) })
	}
	return nil
}

func (m *model) viewNetwork(n *contivmodel.Network) {
	n.LinkSets.EndpointGroups = contivmodel.NewLinkSet(contivmodel.EndpointGroupType, sortedKeys(m.groups.ofNetwork, n.Key))
	n.LinkSets.Servicelbs = contivmodel.NewLinkSet(contivmodel.ServiceLBType, sortedKeys(m.services.ofNetwork, n.Key))
}

func (m *model) networkOper(n *contivmodel.Network, hosts vteps) (contivmodel.NetworkOper, error) {
	id := state.NetworkID(n.NetworkName, n.TenantName)
	rec, ok := m.networks.records.base[id]
	if !ok {
		return contivmodel.NetworkOper{}, errs.New(errs.NotFound, "key not found: network %s", id)
	}
	cfg, err := addressing(n)
	if err != nil {
		return contivmodel.NetworkOper{}, err
	}
	oper := contivmodel.NetworkOper{
		Endpoints:      m.endpointOpers(m.endpoints.ofNetwork, id, hosts),
		ExternalPktTag: rec.v.ExtPktTag,
		NetworkTag:     rec.v.NetworkTag,
		PktTag:         rec.v.PktTag,
	}
	oper.NumEndpoints = len(oper.Endpoints)
	taken, handedOut := m.takenRanges(id)
	oper.AllocatedAddressesCount = handedOut
	oper.AllocatedIPAddresses, oper.AvailableIPAddresses = ipam.Report(cfg.Subnet, taken)
	return oper, nil
}

// takenRanges returns what is not free in a network: claimed IPv4 addresses and group
// pools; and how many addresses have been handed out, without gateways.
func (m *model) takenRanges(net string) (taken []contivmodel.Range, handedOut int) {
	for k := range m.addrs.ofNetwork.under(net) {
		r, ok := contivmodel.ParseRange(k.what)
		if !ok {
			continue // IPv6
		}
		taken = append(taken, r)
		if owner := m.addrs.base[k].v.Owner; owner != ownerGateway && !isGroupOwner(owner) {
			handedOut++
		}
	}
	return taken, handedOut
}
