package compiler

// Where the fabric knows groups by VLANs (ACI), an endpoint's port is in the VLAN of its
// group instead of its network's, and what comes in by that VLAN is of the network.

// groupVLANs are the VLANs of groups, with their endpoints on this host.
type groupVLANs struct {
	of      map[string]uint16              // by endpoint id
	members map[uint16]map[string]struct{} // endpoint ids
}

func newGroupVLANs() groupVLANs {
	return groupVLANs{of: map[string]uint16{}, members: map[uint16]map[string]struct{}{}}
}

// put records the VLAN of an endpoint's group, 0 for none, and returns the VLANs whose
// first member has changed.
func (g *groupVLANs) put(id string, tag uint16) (changed []uint16) {
	old := g.of[id]
	if old == tag {
		return nil
	}
	firsts := map[uint16]string{}
	for _, t := range []uint16{old, tag} {
		firsts[t], _ = g.first(t)
	}
	if old != 0 {
		delete(g.of, id)
		if delete(g.members[old], id); len(g.members[old]) == 0 {
			delete(g.members, old)
		}
	}
	if tag != 0 {
		g.of[id] = tag
		if g.members[tag] == nil {
			g.members[tag] = map[string]struct{}{}
		}
		g.members[tag][id] = struct{}{}
	}
	for t, was := range firsts {
		if is, _ := g.first(t); is != was {
			changed = append(changed, t)
		}
	}
	return changed
}

// first is the member of a VLAN with the lowest id.
func (g *groupVLANs) first(tag uint16) (id string, ok bool) {
	for m := range g.members[tag] {
		if !ok || m < id {
			id, ok = m, true
		}
	}
	return id, ok
}
