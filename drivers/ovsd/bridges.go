package ovsd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// monitored are the columns the driver reads.
func monitored() map[string][]string {
	return map[string][]string{
		"Open_vSwitch": {"bridges", "ovs_version", "next_cfg", "cur_cfg"},
		"Bridge":       {"name", "ports", "datapath_type", "datapath_id", "external_ids", "other_config", "fail_mode", "protocols", "mcast_snooping_enable"},
		"Port":         {"name", "interfaces", "tag", "trunks", "vlan_mode", "external_ids"},
		"Interface":    {"name", "type", "ofport", "options", "external_ids", "error", "link_state", "lacp_current"},
	}
}

// removeBridge removes a bridge from the database, and asks the switch to say when it has
// done so (settled).
func removeBridge(ctx context.Context, db *ovsdb.Client, name string, id ovsdb.UUID) error {
	_, err := db.Transact(ctx, ovsdb.Mutate("Open_vSwitch", nil,
		ovsdb.DeleteFrom("bridges", ovsdb.Set{id}), ovsdb.Mutation{Column: "next_cfg", Mutator: "+=", Value: 1}))
	if err != nil {
		return fmt.Errorf("remove bridge %s: %w", name, err)
	}
	return nil
}

// settled reports that the switch acts as the database says (ovs-vswitchd.conf.db(5),
// cur_cfg), as far as a transaction has asked for that.
func settled(v ovsdb.View) bool {
	done := true
	v.Each("Open_vSwitch", func(_ ovsdb.UUID, row ovsdb.Row) {
		next, _ := row.Int("next_cfg")
		current, _ := row.Int("cur_cfg")
		done = current >= next
	})
	return done
}

// datapathType resolves "auto" to what this host supports.
func (c *Config) datapathType() string {
	if c.Datapath != "auto" {
		return c.Datapath
	}
	if kernelDatapath() {
		return "system"
	}
	return "netdev"
}

// datapathID is stable per host and bridge: Open vSwitch would otherwise derive it from the
// lowest MAC of the ports, and drop the OpenFlow connection when that changes.
func datapathID(hostLabel, bridge string) string {
	sum := sha256.Sum256([]byte(hostLabel + "/" + bridge))
	return fmt.Sprintf("%016x", sum[:8])
}

// bridgeSettings are the columns the driver sets on its bridges.
func (d *Driver) bridgeSettings(name string) ovsdb.Row {
	return ovsdb.Row{
		"protocols": ovsdb.StringSet("OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13"),
		"fail_mode": ovsdb.StringSet("secure"),
	}
}

// ensureBridge creates a bridge with its local port, or adopts an existing one. It refuses
// a bridge whose datapath type differs from an explicit setting: changing the type would
// disconnect every container.
func (d *Driver) ensureBridge(ctx context.Context, name string) error {
	id, row, exists := d.find("Bridge", "name", name)
	other := map[string]string{"datapath-id": datapathID(d.cfg.HostLabel, name), "disable-in-band": "true"}
	settings := d.bridgeSettings(name)
	if exists {
		if have := row.String("datapath_type"); d.cfg.Datapath != "auto" && have != d.cfg.Datapath && !(have == "" && d.cfg.Datapath == "system") {
			return errs.New(errs.Invalid, "bridge %s has datapath %q but --ovs-datapath is %q; run netplugin cleanup first, or drop the flag", name, have, d.cfg.Datapath)
		}
		return d.adoptBridge(ctx, id, row, settings, other)
	}
	settings["name"] = name
	settings["datapath_type"] = d.cfg.datapathType()
	settings["ports"] = ovsdb.NamedUUID("local")
	settings["external_ids"] = ovsdb.StringMap(map[string]string{ownerKey: ownerMark})
	settings["other_config"] = ovsdb.StringMap(other)
	_, err := d.db.Transact(ctx,
		ovsdb.Insert("Interface", "localif", ovsdb.Row{"name": name, "type": "internal"}),
		ovsdb.Insert("Port", "local", ovsdb.Row{"name": name, "interfaces": ovsdb.NamedUUID("localif")}),
		ovsdb.Insert("Bridge", "bridge", settings),
		ovsdb.Mutate("Open_vSwitch", nil, ovsdb.InsertInto("bridges", ovsdb.NamedUUID("bridge"))))
	if err != nil {
		return fmt.Errorf("create bridge %s: %w", name, err)
	}
	d.cfg.Log.WithField("bridge", name).WithField("datapath", settings["datapath_type"]).Info("bridge created")
	return nil
}

// adoptBridge writes only what differs: any update makes the switch reconfigure itself,
// even one that changes nothing.
func (d *Driver) adoptBridge(ctx context.Context, id ovsdb.UUID, row ovsdb.Row, settings ovsdb.Row, other map[string]string) error {
	change := ovsdb.Row{}
	if !slices.Equal(row.Strings("protocols"), []string{"OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13"}) {
		change["protocols"] = settings["protocols"]
	}
	if !slices.Equal(row.Strings("fail_mode"), []string{"secure"}) {
		change["fail_mode"] = settings["fail_mode"]
	}
	oc := row.Map("other_config")
	wanted := maps.Clone(oc)
	maps.Copy(wanted, other)
	if !maps.Equal(oc, wanted) {
		change["other_config"] = ovsdb.StringMap(wanted)
	}
	ids := row.Map("external_ids")
	if ids[ownerKey] != ownerMark {
		ids[ownerKey] = ownerMark
		change["external_ids"] = ovsdb.StringMap(ids)
	}
	if len(change) == 0 {
		return nil
	}
	if _, err := d.db.Transact(ctx, ovsdb.Update("Bridge", ovsdb.ByUUID(id), change)); err != nil {
		return fmt.Errorf("adopt bridge %s: %w", row.String("name"), err)
	}
	return nil
}

// nextRound counts the agent's starts on a bridge; the number becomes part of cookies.
func (d *Driver) nextRound(ctx context.Context, bridge string) (uint16, error) {
	id, row, ok := d.find("Bridge", "name", bridge)
	if !ok {
		return 0, errs.New(errs.NotFound, "bridge %s is gone", bridge)
	}
	last, _ := strconv.ParseUint(row.Map("external_ids")[roundKey], 10, 16)
	round := uint16(last)%0xfffe + 1
	if err := d.setExternalID(ctx, "Bridge", id, roundKey, strconv.Itoa(int(round))); err != nil {
		return 0, fmt.Errorf("count the start of bridge %s: %w", bridge, err)
	}
	return round, nil
}

// setExternalID sets one key, whether or not it exists.
func (d *Driver) setExternalID(ctx context.Context, table string, id ovsdb.UUID, key, value string) error {
	_, err := d.db.Transact(ctx, ovsdb.Mutate(table, ovsdb.ByUUID(id),
		ovsdb.DeleteFrom("external_ids", ovsdb.StringSet(key)),
		ovsdb.InsertInto("external_ids", ovsdb.StringMap(map[string]string{key: value}))))
	return err
}

// ensureTunnel creates the flow-based VXLAN port: one for all peers, as flows set the
// remote address.
func (d *Driver) ensureTunnel(ctx context.Context) error {
	options := map[string]string{
		"remote_ip": "flow", "key": "flow", "tos": "inherit",
		"dst_port": strconv.Itoa(int(d.cfg.VXLANPort)),
	}
	// Peers accept our packets only from the address they have for us.
	if linkWithAddr(d.cfg.VTEP) != nil {
		options["local_ip"] = d.cfg.VTEP.String()
	}
	if id, row, ok := d.find("Interface", "name", tunnelName); ok {
		if maps.Equal(row.Map("options"), options) {
			return nil
		}
		_, err := d.db.Transact(ctx, ovsdb.Update("Interface", ovsdb.ByUUID(id), ovsdb.Row{"options": ovsdb.StringMap(options)}))
		return err
	}
	mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark})
	_, err := d.db.Transact(ctx, addPort(VXLANBridge, "p0", ovsdb.Row{"name": tunnelName, "external_ids": mark},
		ovsdb.Row{
			"name": tunnelName, "type": "vxlan", "ofport_request": tunnelOFPort,
			"options": ovsdb.StringMap(options), "external_ids": mark,
		})...)
	if err != nil {
		return fmt.Errorf("create the tunnel port %s: %w", tunnelName, err)
	}
	return nil
}

// removePorts removes ports from a bridge; the database then drops their rows by itself.
func (d *Driver) removePorts(ctx context.Context, bridge string, ports ...ovsdb.UUID) error {
	if len(ports) == 0 {
		return nil
	}
	refs := make(ovsdb.Set, len(ports))
	for i, p := range ports {
		refs[i] = p
	}
	_, err := d.db.Transact(ctx, ovsdb.Mutate("Bridge", ovsdb.ByName(bridge), ovsdb.DeleteFrom("ports", refs)))
	return err
}

// find reads one row of the cache.
func (d *Driver) find(table, column, value string) (id ovsdb.UUID, row ovsdb.Row, ok bool) {
	d.db.View(func(v ovsdb.View) { id, row, ok = v.Find(table, column, value) })
	return id, row, ok
}
