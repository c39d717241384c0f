package ovsd

import (
	"context"
	"fmt"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
)

// Where the fabric identifies groups by VLANs (ACI), an endpoint's port is in the VLAN of
// its group instead of its network's, and frames from that VLAN belong to the network.

// accessTag returns the VLAN for an endpoint's port, given that of its network.
func (d *Driver) accessTag(endpoint string, network uint16) uint16 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.compiler.Endpoints[endpoint]; ok && e.Network.Encap == ofnet.VLAN {
		return e.VLAN()
	}
	return network
}

// mistagged lists the ports of endpoints that are in the wrong VLAN.
func (d *Driver) mistagged() map[ovsdb.UUID]uint16 {
	d.mu.Lock()
	wanted := make(map[string]uint16, len(d.compiler.Ports))
	for id := range d.compiler.Ports {
		if e, ok := d.compiler.Endpoints[id]; ok && e.Local && e.Network.Encap == ofnet.VLAN {
			wanted[id] = e.VLAN()
		}
	}
	d.mu.Unlock()
	out := map[ovsdb.UUID]uint16{}
	d.db.View(func(v ovsdb.View) {
		v.Each("Port", func(id ovsdb.UUID, row ovsdb.Row) {
			ids := row.Map("external_ids")
			tag, ok := wanted[ids[endpointKey]]
			if have, _ := row.Int("tag"); ok && ids[ownerKey] == ownerMark && have != int64(tag) {
				out[id] = tag
			}
		})
	})
	return out
}

// tagged reports whether an endpoint's port is in the right VLAN.
func (d *Driver) tagged(endpoint string) bool {
	want := int64(d.accessTag(endpoint, 0))
	ok := true
	d.db.View(func(v ovsdb.View) {
		v.Each("Port", func(_ ovsdb.UUID, row ovsdb.Row) {
			if ids := row.Map("external_ids"); want != 0 && ids[ownerKey] == ownerMark && ids[endpointKey] == endpoint {
				have, _ := row.Int("tag")
				ok = have == want
			}
		})
	})
	return ok
}

// retag moves ports into the right VLANs.
func (d *Driver) retag(ctx context.Context) error {
	for id, tag := range d.mistagged() {
		if _, err := d.db.Transact(ctx, ovsdb.Update("Port", ovsdb.ByUUID(id), ovsdb.Row{"tag": int(tag)})); err != nil {
			return fmt.Errorf("move a port to VLAN %d: %w", tag, err)
		}
	}
	return nil
}
