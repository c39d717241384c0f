package ovsd

import (
	"context"
	"net/netip"
	"testing"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// TestInsideFirstOfATenant: a tenant has no flows on a host without an endpoint of it. When
// its first one is realised, the switch has the flows to all others, and they go with it.
func TestInsideFirstOfATenant(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	d, _ := runDriver(t, testConfig(dir))
	d.Apply(contract.Global)
	n := contract.Network
	n.Subnet4, n.Gateway4 = netip.MustParsePrefix("10.1.0.0/16"), netip.MustParseAddr("10.1.255.254")
	d.Apply(n)
	d.Synced(drivers.SourceStore)
	ready(t, d)
	sw := d.bridges[ofnet.VXLAN].sw
	before := sw.Status().Actual
	const others = 20000 // so that the bridge takes longer than the compiler
	for i := range others {
		d.Apply(drivers.Endpoint{
			ID: "net1.default-r" + netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}).String(), Network: n, VTEP: netip.MustParseAddr("192.168.60.11"),
			MAC: ofnet.MAC{2, 2, 10, 1, byte(i >> 8), byte(i)}, IPv4: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}),
		})
	}
	ready(t, d)
	if now := sw.Status().Actual; now != before {
		t.Errorf("%d flows without the others' tenant, %d with it", before, now)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	local := drivers.Endpoint{ID: "net1.default-here", Network: n, MAC: ofnet.MAC{2, 2, 10, 1, 200, 1}, IPv4: netip.MustParseAddr("10.1.200.1"), Local: true}
	if _, err := d.Attach(ctx, drivers.Attachment{EndpointID: local.ID, ContainerID: "c1", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VXLAN, 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d.Apply(local)
		if err := d.Realised(ctx, local.ID); err != nil {
			t.Fatal(err)
		}
		if st := sw.Status(); st.Pending != 0 || st.Actual < before+others {
			t.Errorf("%d flows and %d pending when the first one is realised, want those of %d others too", st.Actual, st.Pending, others)
		}
		d.Delete(drivers.KindEndpoint, local.ID)
		eventually.True(t, "the flows go", func() bool { return sw.Status().Actual == before })
	}
	if err := d.Detach(ctx, local.ID); err != nil {
		t.Fatal(err)
	}
}
