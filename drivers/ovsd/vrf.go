package ovsd

import (
	"context"
	"fmt"
	"strings"

	"github.com/contiv/netplugin/ovsdb"
)

// vrfTable numbers the tenants' VRFs on this host. Numbers are kept in the VXLAN
// bridge's external_ids, so that the flows after a restart equal those before.
type vrfTable struct {
	ids   map[string]uint16
	names map[uint16]string // the tenants by number
	dirty bool
}

func newVRFTable() vrfTable {
	return vrfTable{ids: map[string]uint16{}, names: map[uint16]string{}}
}

func (t *vrfTable) load(v ovsdb.View) {
	_, row, _ := v.Find("Bridge", "name", VXLANBridge)
	for key, value := range row.Map("external_ids") {
		tenant, ok := strings.CutPrefix(key, vrfKeyPrefix)
		var n uint16
		if _, err := fmt.Sscanf(value, "%d", &n); ok && err == nil && n > 0 && t.names[n] == "" {
			t.ids[tenant], t.names[n] = n, tenant
		}
	}
}

// number returns the tenant's number, giving it the lowest free one if it has none.
func (t *vrfTable) number(tenant string) uint16 {
	if n, ok := t.ids[tenant]; ok {
		return n
	}
	n := uint16(1)
	for t.names[n] != "" {
		n++
	}
	t.ids[tenant], t.names[n], t.dirty = n, tenant, true
	return n
}

// vrf returns a tenant's number and has a new one stored. The caller holds mu.
func (d *Driver) vrf(tenant string) uint16 {
	n := d.vrfs.number(tenant)
	if d.vrfs.dirty {
		d.wantRepair()
		d.wantLimits()
	}
	return n
}

func (d *Driver) vrfsUnsaved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.vrfs.dirty
}

func (d *Driver) saveVRFs(ctx context.Context) error {
	d.mu.Lock()
	pairs := map[string]string{}
	for tenant, n := range d.vrfs.ids {
		pairs[vrfKeyPrefix+tenant] = fmt.Sprint(n)
	}
	d.mu.Unlock()
	if len(pairs) == 0 {
		return nil
	}
	keys := make([]string, 0, len(pairs))
	for k := range pairs {
		keys = append(keys, k)
	}
	_, err := d.db.Transact(ctx, ovsdb.Mutate("Bridge", ovsdb.ByName(VXLANBridge),
		ovsdb.DeleteFrom("external_ids", ovsdb.StringSet(keys...)), ovsdb.InsertInto("external_ids", ovsdb.StringMap(pairs))))
	if err != nil {
		return fmt.Errorf("store the numbers of VRFs: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.vrfs.ids) == len(pairs) {
		d.vrfs.dirty = false
	}
	return nil
}
