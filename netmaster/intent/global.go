package intent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/contiv/netplugin/contivmodel"
	"github.com/contiv/netplugin/netmaster/tags"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// globalTables are the global settings and the record for agents.
type globalTables struct {
	*objects[contivmodel.Global, contivmodel.GlobalOper]
	settings *table[string, state.Global] // one row, under ""
}

func registerGlobals(m *model) globalTables {
	return globalTables{
		objects: register(m, contivmodel.GlobalKind(), lifecycle[contivmodel.Global, contivmodel.GlobalOper]{
			alone:  true,
			create: setGlobal,
			update: updateGlobal,
			remove: removeGlobal,
			oper:   m.globalOper,
		}),
		settings: records[state.Global](m, state.GlobalKey),
	}
}

// setGlobal plans the settings, the record for agents, and the tag ranges.
func setGlobal(x *tx, g *contivmodel.Global) error {
	vlans, err := contivmodel.ParseVLANs(g.Vlans)
	if err != nil {
		return err
	}
	vxlans, err := contivmodel.ParseVXLANs(g.Vxlans)
	if err != nil {
		return err
	}
	x.globals.put(x, g.Key, g)
	x.globals.settings.put(x, "", &state.Global{InfraType: g.NetworkInfraType, FwdMode: g.FwdMode, ARPMode: g.ArpMode, PvtSubnet: g.PvtSubnet})
	setRange(x, tags.VLAN, vlans)
	setRange(x, tags.VXLAN, vxlans)
	return nil
}

func setRange(x *tx, pool string, r contivmodel.TagRange) {
	p := x.pools[pool]
	old := p.Range()
	p.SetRange(r)
	x.onUndo(func() { p.SetRange(old) })
}

// updateGlobal replaces the settings, unless something in use depends on them. Empty
// optional fields keep their values.
func updateGlobal(x *tx, old, req *contivmodel.Global) error {
	g := *req
	keep(&g.ArpMode, old.ArpMode)
	keep(&g.FwdMode, old.FwdMode)
	keep(&g.NetworkInfraType, old.NetworkInfraType)
	vlans, vxlans := tagsInUse(x, tags.VLAN), tagsInUse(x, tags.VXLAN)
	if g.FwdMode != old.FwdMode && len(vlans)+len(vxlans) > 0 {
		return errs.New(errs.InUse, "Unable to update forwarding mode due to existing %s", counts(vlans, vxlans))
	}
	if blockers := names(x.bgps.all(), keyOf[contivmodel.Bgp]); g.FwdMode != old.FwdMode && old.FwdMode == "routing" && blockers != "" {
		return errs.New(errs.InUse, "Unable to leave forwarding mode routing, please delete existing Bgp configs: %s", blockers)
	}
	if g.PvtSubnet != old.PvtSubnet && len(vlans)+len(vxlans) > 0 && (old.PvtSubnet != "" || g.PvtSubnet != contivmodel.DefaultPvtSubnet) {
		return errs.New(errs.InUse, "Unable to update private subnet due to existing %s", counts(vlans, vxlans))
	}
	flips := (g.NetworkInfraType == contivmodel.InfraACI) != (old.NetworkInfraType == contivmodel.InfraACI)
	if n := len(x.groups.base); flips && n > 0 {
		return errs.New(errs.InUse, "cannot change networkInfraType from %q to %q while %d endpoint groups exist",
			old.NetworkInfraType, g.NetworkInfraType, n)
	}
	if err := setGlobal(x, &g); err != nil {
		return err
	}
	if !covers(x.pools[tags.VLAN].Range(), vlans) {
		return errs.New(errs.InUse, "cannot update the vlan range due to existing vlans %s: %s does not cover them", tags.Text(vlans), g.Vlans)
	}
	if !covers(x.pools[tags.VXLAN].Range(), vxlans) {
		return errs.New(errs.InUse, "cannot update the vxlan range due to existing vxlans %s: %s does not cover them", tags.Text(vxlans), g.Vxlans)
	}
	return nil
}

func keep(field *string, old string) {
	if *field == "" {
		*field = old
	}
}

// covers reports whether all tags, in ascending order, are in r.
func covers(r contivmodel.TagRange, tags []int) bool {
	return len(tags) == 0 || r.Contains(tags[0]) && r.Contains(tags[len(tags)-1])
}

// counts says how many tags are in use, leaving out zeros.
func counts(vlans, vxlans []int) string {
	var parts []string
	if n := len(vlans); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" vlans")
	}
	if n := len(vxlans); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" vxlans")
	}
	return strings.Join(parts, " and ")
}

// removeGlobal fails while tags are in use: networks need their pools.
func removeGlobal(x *tx, _ *contivmodel.Global) error {
	if vlans, vxlans := tagsInUse(x, tags.VLAN), tagsInUse(x, tags.VXLAN); len(vlans)+len(vxlans) > 0 {
		return errs.New(errs.InUse, "cannot delete the global settings due to existing %s", counts(vlans, vxlans))
	}
	x.globals.settings.del(x, "")
	setRange(x, tags.VLAN, contivmodel.TagRange{})
	setRange(x, tags.VXLAN, contivmodel.TagRange{})
	return nil
}

// tagsInUse is the writer's view of a pool's claimed tags, ascending.
func tagsInUse(x *tx, pool string) []int {
	var in []int
	for k := range x.tags.where(x.tags.ofPool, pool) {
		in = append(in, k.tag)
	}
	slices.Sort(in)
	return in
}

func (m *model) globalOper(g *contivmodel.Global, _ vteps) (contivmodel.GlobalOper, error) {
	inUse := func(pool string) []int {
		var in []int
		for k := range m.tags.ofPool.under(pool) {
			in = append(in, k.tag)
		}
		slices.Sort(in)
		return in
	}
	vlans, vxlans := inUse(tags.VLAN), inUse(tags.VXLAN)
	oper := contivmodel.GlobalOper{
		ClusterMode: m.cfg.ClusterMode,
		NumNetworks: len(vlans) + len(vxlans),
		VlansInUse:  tags.Text(vlans), VxlansInUse: tags.Text(vxlans),
	}
	if r, err := contivmodel.ParseVXLANs(g.Vxlans); err == nil {
		oper.FreeVXLANsStart = r.Low - 1
	}
	return oper, nil
}
