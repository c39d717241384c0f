package ovsd

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// ensureUplinks makes the VLAN bridge's uplink port exactly the configured interfaces:
// one interface stands for itself, several form a bond. A port that fits is not touched.
func (d *Driver) ensureUplinks(ctx context.Context) error {
	wanted := slices.Sorted(slices.Values(d.cfg.Uplinks))
	for _, name := range wanted {
		if err := checkUplink(name, d.cfg); err != nil {
			return err
		}
	}
	have := d.uplinkPorts()
	var stale []ovsdb.UUID
	fits := false
	for id, members := range have {
		if len(wanted) > 0 && slices.Equal(members, wanted) {
			fits = true
			continue
		}
		stale = append(stale, id)
	}
	if err := d.removePorts(ctx, VLANBridge, stale...); err != nil {
		return fmt.Errorf("remove the former uplink: %w", err)
	}
	if fits || len(wanted) == 0 {
		return nil
	}
	mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark, endpointKey: uplinkEndpoint})
	port := ovsdb.Row{"name": wanted[0], "vlan_mode": "trunk", "external_ids": mark}
	if len(wanted) > 1 {
		port = ovsdb.Row{
			"name": uplinkEndpoint, "vlan_mode": "trunk", "bond_mode": "balance-tcp", "lacp": "active", "external_ids": mark,
			"other_config": ovsdb.StringMap(map[string]string{"lacp-fallback-ab": "true"}),
		}
	}
	var interfaces []ovsdb.Row
	for i, name := range wanted {
		interfaces = append(interfaces, ovsdb.Row{"name": name, "ofport_request": firstUplinkOFPort + i, "external_ids": mark})
	}
	if _, err := d.db.Transact(ctx, addPort(VLANBridge, "uplink", port, interfaces...)...); err != nil {
		return fmt.Errorf("add the uplink %v to %s: %w", wanted, VLANBridge, err)
	}
	d.cfg.Log.WithField("interfaces", wanted).Info("uplink added")
	return nil
}

// uplinkPorts lists the uplink ports there are, with their members sorted.
func (d *Driver) uplinkPorts() map[ovsdb.UUID][]string {
	out := map[ovsdb.UUID][]string{}
	d.db.View(func(v ovsdb.View) {
		v.Each("Port", func(id ovsdb.UUID, row ovsdb.Row) {
			if row.Map("external_ids")[endpointKey] != uplinkEndpoint {
				return
			}
			for _, ifID := range row.UUIDs("interfaces") {
				if ifRow, ok := v.Row("Interface", ifID); ok {
					out[id] = append(out[id], ifRow.String("name"))
				}
			}
			slices.Sort(out[id])
		})
	})
	return out
}

// uplinks lists the uplink interfaces that have an OpenFlow number.
func uplinks(v ovsdb.View) []ofnet.Uplink {
	found := map[string]ofnet.Uplink{}
	v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
		if row.Map("external_ids")[endpointKey] != uplinkEndpoint {
			return
		}
		if n, ok := row.Int("ofport"); ok && n > 0 {
			found[row.String("name")] = ofnet.Uplink{Name: row.String("name"), Port: uint32(n), Down: row.String("link_state") == "down"}
		}
	})
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b ofnet.Uplink) int { return int(a.Port) - int(b.Port) })
	return out
}

// recovered reports whether the way out is back: none of the uplinks was up, and now one
// is. What lies beyond may have forgotten who is here.
func recovered(before, now []ofnet.Uplink) bool {
	up := func(u ofnet.Uplink) bool { return !u.Down }
	return len(before) > 0 && !slices.ContainsFunc(before, up) && slices.ContainsFunc(now, up)
}

// checkUplink refuses an interface whose loss would cut the host off: in the bridge it
// can no longer carry the host's own addresses.
func checkUplink(name string, cfg Config) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return errs.New(errs.Invalid, "uplink %s: no such interface on this host; name one that leads to the VLAN network", name)
	}
	routes, err := netlink.RouteList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("uplink %s: read its routes: %w", name, err)
	}
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() {
			return errs.New(errs.Invalid, "uplink %s carries this host's default route; use an interface without addresses of the host", name)
		}
	}
	for what, addr := range map[string]netip.Addr{"tunnel": cfg.VTEP, "control": cfg.CtrlIP} {
		if holder := linkWithAddr(addr); holder != nil && holder.Attrs().Name == name {
			return errs.New(errs.Invalid, "uplink %s holds the %s address %s; use another interface for VLANs", name, what, addr)
		}
	}
	return nil
}
