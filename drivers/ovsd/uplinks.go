package ovsd

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// ensureUplinks sets the members of the VLAN bridge's uplink port to the configured
// interfaces, or if these are taken over, to the patch port to their bridge.
func (d *Driver) ensureUplinks(ctx context.Context) error {
	wanted := slices.Sorted(slices.Values(d.cfg.Uplinks))
	taken, err := d.ensureTakeover(ctx, wanted)
	if err != nil {
		return err
	}
	if taken {
		return d.ensureUplinkPort(ctx, VLANBridge, []string{patchToUplink})
	}
	for _, name := range wanted {
		if err := checkUplink(name, d.cfg); err != nil {
			return err
		}
	}
	return d.ensureUplinkPort(ctx, VLANBridge, wanted)
}

// ensureUplinkPort sets the members of a bridge's uplink port: one interface is used
// directly, several form a bond. A port that is right is left alone except for its VLANs.
func (d *Driver) ensureUplinkPort(ctx context.Context, bridge string, wanted []string) error {
	endpoint := uplinkEndpoints[bridge]
	var have map[ovsdb.UUID][]string
	d.db.View(func(v ovsdb.View) { have = portsOf(v, endpoint) })
	var stale []ovsdb.UUID
	fits := false
	for id, members := range have {
		if len(wanted) > 0 && slices.Equal(members, wanted) {
			fits = true
			continue
		}
		stale = append(stale, id)
	}
	if err := d.removePorts(ctx, bridge, stale...); err != nil {
		return fmt.Errorf("remove the former uplink: %w", err)
	}
	if fits || len(wanted) == 0 {
		return d.keepTrunks(ctx)
	}
	mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark, endpointKey: endpoint})
	port := ovsdb.Row{"name": wanted[0], "external_ids": mark}
	if len(wanted) > 1 {
		port = ovsdb.Row{
			"name": uplinkEndpoint, "bond_mode": "balance-tcp", "lacp": "active", "external_ids": mark,
			"other_config": ovsdb.StringMap(map[string]string{"lacp-fallback-ab": "true"}),
		}
	}
	port["vlan_mode"] = "trunk"
	if bridge == VLANBridge {
		port["trunks"] = d.trunks()
	}
	var interfaces []ovsdb.Row
	for i, name := range wanted {
		row := ovsdb.Row{"name": name, "ofport_request": firstUplinkOFPort + i, "external_ids": mark}
		if name == patchToUplink {
			row["type"], row["options"] = "patch", ovsdb.StringMap(map[string]string{"peer": patchToVLAN})
		}
		interfaces = append(interfaces, row)
	}
	if _, err := d.db.Transact(ctx, addPort(bridge, "uplink", port, interfaces...)...); err != nil {
		return fmt.Errorf("add the uplink %v to %s: %w", wanted, bridge, err)
	}
	d.cfg.Log.WithField("interfaces", wanted).WithField("bridge", bridge).Info("uplink added")
	return nil
}

func (d *Driver) uplinkPorts() (ports map[ovsdb.UUID][]string) {
	d.db.View(func(v ovsdb.View) { ports = uplinkPorts(v) })
	return ports
}

// uplinkPorts lists the uplink ports of the VLAN bridge, with their members sorted.
func uplinkPorts(v ovsdb.View) map[ovsdb.UUID][]string { return portsOf(v, uplinkEndpoint) }

// portsOf lists the ports with an endpointKey, with their members sorted.
func portsOf(v ovsdb.View, endpoint string) map[ovsdb.UUID][]string {
	out := map[ovsdb.UUID][]string{}
	v.Each("Port", func(id ovsdb.UUID, row ovsdb.Row) {
		if row.Map("external_ids")[endpointKey] != endpoint {
			return
		}
		for _, ifID := range row.UUIDs("interfaces") {
			if ifRow, ok := v.Row("Interface", ifID); ok {
				out[id] = append(out[id], ifRow.String("name"))
			}
		}
		slices.Sort(out[id])
	})
	return out
}

// uplinks lists the uplink interfaces that have an OpenFlow number. Down are those without
// carrier, and members of a bond whose LACP partner (IEEE 802.1AX) answers on other members
// only. Uplinks that are taken over count as one, which is down when all of them are.
func uplinks(v ovsdb.View) []ofnet.Uplink {
	found := map[string]ofnet.Uplink{}
	silent, answered := map[string]bool{}, false
	members, membersDown := 0, 0
	v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
		switch row.Map("external_ids")[endpointKey] {
		case uplinkEndpoint:
		case takenEndpoint:
			members++
			if row.String("link_state") == "down" {
				membersDown++
			}
			return
		default:
			return
		}
		name := row.String("name")
		if n, ok := row.Int("ofport"); ok && n > 0 {
			found[name] = ofnet.Uplink{Name: name, Port: uint32(n), Down: row.String("link_state") == "down"}
		}
		if current, known := row.Bool("lacp_current"); known { // unknown without LACP
			silent[name] = !current
			answered = answered || current
		}
	})
	out := slices.Collect(maps.Values(found))
	for i, u := range out {
		out[i].Down = u.Down || answered && silent[u.Name] || u.Name == patchToUplink && members == membersDown
	}
	return byPort(out)
}

func byPort(uplinks []ofnet.Uplink) []ofnet.Uplink {
	slices.SortFunc(uplinks, func(a, b ofnet.Uplink) int { return int(a.Port) - int(b.Port) })
	return uplinks
}

// uplinks lists those that the programs use, in the order of their ports. The caller holds
// mu.
func (d *Driver) uplinks() []ofnet.Uplink {
	return byPort(slices.Collect(maps.Values(d.compiler.Uplinks)))
}

// recovered reports whether the first uplink has come up after all were down. Neighbors may
// have forgotten our endpoints.
func recovered(before, now []ofnet.Uplink) bool {
	up := func(u ofnet.Uplink) bool { return !u.Down }
	return len(before) > 0 && !slices.ContainsFunc(before, up) && slices.ContainsFunc(now, up)
}

// checkUplink refuses an interface whose loss would cut off the host: in the bridge it can
// no longer carry the host's own addresses.
func checkUplink(name string, cfg Config) error {
	link, err := netlinksafe.LinkByName(name)
	if err != nil {
		return errs.New(errs.Invalid, "uplink %s: no such interface on this host; name one that leads to the VLAN network", name)
	}
	routes, err := netlinksafe.RouteList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("uplink %s: read its routes: %w", name, err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			return errs.New(errs.Invalid, "uplink %s carries this host's default route; use an interface without addresses of the host, or --takeover", name)
		}
	}
	for what, addr := range map[string]netip.Addr{"tunnel": cfg.VTEP, "control": cfg.CtrlIP} {
		if holder := linkWithAddr(addr); holder != nil && holder.Attrs().Name == name {
			return errs.New(errs.Invalid, "uplink %s holds the %s address %s; use another interface for VLANs, or --takeover", name, what, addr)
		}
	}
	return nil
}
