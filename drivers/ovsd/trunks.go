package ovsd

import (
	"context"
	"fmt"
	"slices"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
)

// The uplinks carry the VLANs in use here and no others: broadcasts of other VLANs of the
// physical network do not come in, and ours do not leak out.

// untagged stands for untagged frames in a port's trunks. It is also all that the uplinks
// carry while no VLAN is in use, because the database takes empty trunks for all VLANs; no
// other port of the bridge is in it.
const untagged = 0

// wantedTrunks are the VLANs that the uplinks should carry: those of networks, of groups
// with endpoints here (in the fabric), of ports that still exist, and untagged frames for
// the router. The caller holds mu.
func (d *Driver) wantedTrunks(v ovsdb.View) map[int64]bool {
	out := map[int64]bool{}
	for _, n := range d.compiler.Networks {
		if n.Encap == ofnet.VLAN {
			out[int64(n.Tag)] = true
		}
	}
	for _, e := range d.compiler.Endpoints {
		if e.Local && e.Network.Encap == ofnet.VLAN {
			out[int64(e.VLAN())] = true
		}
	}
	for _, p := range bridgePorts(v, VLANBridge) {
		if _, isEndpoint := portNumber(p.row.String("name")); !isEndpoint {
			continue
		}
		port, _ := v.Row("Port", p.id)
		if tag, ok := port.Int("tag"); ok {
			out[tag] = true
		}
	}
	if len(out) == 0 || d.compiler.Global.FwdMode == "routing" {
		out[untagged] = true
	}
	return out
}

// trunkOps are the operations that set the uplink's trunks, none if they are right. Before
// the initial sync they only add. also are additional VLANs.
func (d *Driver) trunkOps(also ...uint16) (ops []ovsdb.Operation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.db.View(func(v ovsdb.View) {
		wanted := d.wantedTrunks(v)
		for _, tag := range also {
			wanted[int64(tag)] = true
		}
		for _, endpoint := range []string{uplinkEndpoint, patchEndpoint} {
			for id := range portsOf(v, endpoint) {
				row, _ := v.Row("Port", id)
				if change := trunkChange(wanted, row.Ints("trunks"), d.compiler.Synced); change != nil {
					ops = append(ops, ovsdb.Update("Port", ovsdb.ByUUID(id), ovsdb.Row{"trunks": change}))
				}
			}
		}
	})
	return ops
}

// trunkChange returns the new trunks, or nil when have may stay.
func trunkChange(wanted map[int64]bool, have []int64, complete bool) ovsdb.Set {
	missing := len(wanted)
	next := trunkSet(wanted)
	for _, tag := range have {
		switch {
		case wanted[tag]:
			missing--
		case !complete:
			next = append(next, int(tag))
		}
	}
	switch {
	case !complete && (len(have) == 0 || missing == 0): // all VLANs, or enough
		return nil
	case missing == 0 && len(have) == len(next):
		return nil
	}
	return next
}

// trunks are the VLANs of a new uplink port.
func (d *Driver) trunks() (set ovsdb.Set) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.db.View(func(v ovsdb.View) { set = trunkSet(d.wantedTrunks(v)) })
	return set
}

func trunkSet(tags map[int64]bool) ovsdb.Set {
	set := make(ovsdb.Set, 0, len(tags))
	for tag := range tags {
		set = append(set, int(tag))
	}
	slices.SortFunc(set, func(a, b any) int { return a.(int) - b.(int) })
	return set
}

// keepTrunks updates the uplink's trunks.
func (d *Driver) keepTrunks(ctx context.Context) error {
	ops := d.trunkOps()
	if len(ops) == 0 {
		return nil
	}
	if _, err := d.db.Transact(ctx, ops...); err != nil {
		return fmt.Errorf("set the VLANs of the uplink: %w", err)
	}
	return nil
}
