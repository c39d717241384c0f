package ovsd

import (
	"context"
	"fmt"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
)

// Where the fabric knows groups by VLANs (ACI), an endpoint's port is in the VLAN of its
// group instead of its network's, and what comes in by that VLAN is of the network.

// groupVLANs are the VLANs of groups with endpoints here: who is in them, and where.
// The driver's lock guards it.
type groupVLANs struct {
	of      map[string]uint16          // by endpoint id
	members map[uint16]map[string]bool // endpoint ids
}

func newGroupVLANs() groupVLANs {
	return groupVLANs{of: map[string]uint16{}, members: map[uint16]map[string]bool{}}
}

// put notes the VLAN of an endpoint's group, 0 for none, and returns the VLAN that
// nobody is in any more because of that, if there is one.
func (g *groupVLANs) put(id string, tag uint16) (left uint16) {
	old := g.of[id]
	if old == tag {
		return 0
	}
	if old != 0 {
		delete(g.of, id)
		if delete(g.members[old], id); len(g.members[old]) == 0 {
			delete(g.members, old)
			left = old
		}
	}
	if tag != 0 {
		g.of[id] = tag
		if g.members[tag] == nil {
			g.members[tag] = map[string]bool{}
		}
		g.members[tag][id] = true
	}
	return left
}

func groupVLANOwner(tag uint16) string { return fmt.Sprint("vlan/", tag) }

// refreshGroupVLAN renews what leads from a group's VLAN to the network. here says that
// the endpoint has a port. The caller holds mu.
func (d *Driver) refreshGroupVLAN(e drivers.Endpoint, here bool) {
	s := d.sides[ofnet.VLAN]
	tag := uint16(0)
	if here && e.Local && e.Network.Encap == ofnet.VLAN {
		tag = e.Tag
	}
	if left := d.groupTags.put(e.ID, tag); left != 0 {
		s.sw.Remove(groupVLANOwner(left))
	}
	if tag != 0 && s.pipeline != nil {
		s.sw.Set(groupVLANOwner(tag), s.pipeline.Program(ofnet.GroupVLAN{Network: d.asNetwork(e.Network), Tag: tag}))
	}
}

// accessTag is the VLAN that an endpoint's port is to be in, given its network's.
func (d *Driver) accessTag(endpoint string, network uint16) uint16 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.endpoints[endpoint]; ok && e.Network.Encap == ofnet.VLAN {
		return e.VLAN()
	}
	return network
}

// mistagged lists the ports of endpoints that are in another VLAN than they should.
func (d *Driver) mistagged() map[ovsdb.UUID]uint16 {
	d.mu.Lock()
	wanted := make(map[string]uint16, len(d.ports))
	for id := range d.ports {
		if e, ok := d.endpoints[id]; ok && e.Local && e.Network.Encap == ofnet.VLAN {
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

// tagged reports whether the port of an endpoint is in the VLAN it should be in.
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

// retag moves ports into the VLANs they should be in.
func (d *Driver) retag(ctx context.Context) error {
	for id, tag := range d.mistagged() {
		if _, err := d.db.Transact(ctx, ovsdb.Update("Port", ovsdb.ByUUID(id), ovsdb.Row{"tag": int(tag)})); err != nil {
			return fmt.Errorf("move a port to VLAN %d: %w", tag, err)
		}
	}
	return nil
}
