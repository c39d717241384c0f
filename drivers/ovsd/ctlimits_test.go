package ovsd

import (
	"context"
	"maps"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
)

// TestInsideConnectionLimits: the zones of every tenant are limited, also after the switch
// has lost the limits, until they are lifted.
func TestInsideConnectionLimits(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	cfg := testConfig(dir)
	cfg.ConnectionLimit = 1234
	d, stop := runDriver(t, cfg)
	d.Apply(contract.Global)
	d.Apply(contract.Network)
	other := contract.Network
	other.ID, other.Tenant, other.Tag, other.VNI = "net1.other", "other", 99, 10099
	d.Apply(other)
	for _, n := range []drivers.Network{contract.Network, other} { // or this host has nothing of a tenant
		d.Apply(drivers.Endpoint{ID: "ep." + n.ID, Network: n, MAC: ofnet.MAC{2, 2, 20, 1, 1, 9}, IPv4: n.Gateway4.Prev(), Local: true})
	}
	d.Synced(drivers.SourceStore)
	ready(t, d)
	zones := d.limits.zones()
	if len(zones) < 6 {
		t.Fatalf("zones %v, want three of each of two tenants", zones)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := findLimiter(ctx, cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	limits := func() map[uint16]uint32 {
		t.Helper()
		have, err := l.read(ctx, zones)
		if err != nil {
			t.Fatal(err)
		}
		return have
	}
	all := func(limit uint32) func() bool {
		want := map[uint16]uint32{}
		for _, z := range zones {
			want[z] = limit
		}
		return func() bool { return maps.Equal(limits(), want) }
	}
	eventually.True(t, "limits in all zones", all(1234))
	none := map[uint16]uint32{}
	for _, z := range ofnet.Zones(1) {
		none[z] = 0
	}
	if err := l.set(ctx, none, limits()); err != nil {
		t.Fatal(err)
	}
	d.limits.wake() // as every new connection does
	eventually.True(t, "the limits again", all(1234))
	stop()
	if err := liftLimits(ctx, cfg, []uint16{1, 2}); err != nil {
		t.Fatal(err)
	}
	if !all(0)() {
		t.Errorf("after they were lifted: %v", limits())
	}
	if err := Cleanup(ctx, cfg, false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := liftLimits(ctx, cfg, []uint16{1, 2}); err != nil {
		t.Errorf("without a datapath: %v", err)
	}
}
