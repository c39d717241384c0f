package ovsd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contiv/netplugin/ovsdb"
)

// storedVRFs are the numbers of the tenants' VRFs as stored in the VXLAN bridge's
// external_ids, so that flows are the same after a restart.
type storedVRFs struct{ numbers map[string]uint16 }

// unsaved reports whether there are new numbers. Numbers are never taken back.
func (v storedVRFs) unsaved(now map[string]uint16) bool { return len(now) > len(v.numbers) }

func loadVRFs(v ovsdb.View) map[string]uint16 {
	out := map[string]uint16{}
	_, row, _ := v.Find("Bridge", "name", VXLANBridge)
	for key, value := range row.Map("external_ids") {
		tenant, ok := strings.CutPrefix(key, vrfKeyPrefix)
		var n uint16
		if _, err := fmt.Sscanf(value, "%d", &n); ok && err == nil && n > 0 {
			out[tenant] = n
		}
	}
	return out
}

func (d *Driver) loadVRFs() (s storedVRFs) {
	d.db.View(func(v ovsdb.View) { s.numbers = loadVRFs(v) })
	return s
}

func (d *Driver) vrfsUnsaved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.vrfs.unsaved(d.compiler.VRFs)
}

// vrfNumbers lists the numbers of tenants.
func (d *Driver) vrfNumbers() []uint16 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.compiler.VRFs))
}

// saveVRFs stores the numbers, also after a bridge that was recreated has lost them.
func (d *Driver) saveVRFs(ctx context.Context) error {
	d.mu.Lock()
	numbers := maps.Clone(d.compiler.VRFs)
	d.mu.Unlock()
	if len(numbers) == 0 {
		return nil
	}
	pairs := map[string]string{}
	for tenant, n := range numbers {
		pairs[vrfKeyPrefix+tenant] = fmt.Sprint(n)
	}
	keys := slices.Collect(maps.Keys(pairs))
	_, err := d.db.Transact(ctx, ovsdb.Mutate("Bridge", ovsdb.ByName(VXLANBridge),
		ovsdb.DeleteFrom("external_ids", ovsdb.StringSet(keys...)), ovsdb.InsertInto("external_ids", ovsdb.StringMap(pairs))))
	if err != nil {
		return fmt.Errorf("store the numbers of VRFs: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vrfs.numbers = numbers
	return nil
}
