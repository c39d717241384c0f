package ovsd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
)

// WriteFlows writes the flows of the bridges with their counters, in the syntax of ovs-ofctl.
func (d *Driver) WriteFlows(ctx context.Context, w io.Writer) error {
	for _, encap := range []ofnet.Encap{ofnet.VXLAN, ofnet.VLAN} {
		s := d.bridges[encap]
		if _, err := fmt.Fprintf(w, "# %s\n", s.name); err != nil {
			return err
		}
		var failed error
		err := s.sw.Counters(ctx, 0, 0, func(f of.FlowStats) {
			if failed == nil {
				_, failed = fmt.Fprintf(w, "n_packets=%d n_bytes=%d %s\n", f.Packets, f.Bytes, f.Flow)
			}
		})
		if err != nil {
			return fmt.Errorf("flows of %s: %w", s.name, err)
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// WriteDatabase writes what the driver reads of the database of Open vSwitch, a row a line.
func (d *Driver) WriteDatabase(_ context.Context, w io.Writer) error {
	var failed error
	d.db.View(func(v ovsdb.View) {
		for _, table := range slices.Sorted(maps.Keys(monitored())) {
			v.Each(table, func(id ovsdb.UUID, row ovsdb.Row) {
				if failed == nil {
					_, failed = fmt.Fprintf(w, "%s %v %v\n", table, id, row)
				}
			})
		}
	})
	return failed
}
