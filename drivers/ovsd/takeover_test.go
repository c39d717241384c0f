package ovsd

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/hostnet"
	"github.com/contiv/netplugin/drivers/ovsd/veth"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
)

// An uplink with the control address is refused. With Takeover its configuration moves, and
// returns at a start without Takeover, whether or not the uplink is still wanted.
func TestInsideTakeover(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	addUplinks(t, "up1", "up2")
	up1, err := netlinksafe.LinkByName("up1")
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"192.0.2.10/24", "192.0.2.11/24"} {
		a, err := netlink.ParseAddr(address)
		if err == nil {
			err = netlink.AddrAdd(up1, a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(name string) hostnet.LinkConfig {
		t.Helper()
		link, err := netlinksafe.LinkByName(name)
		if err != nil {
			return hostnet.LinkConfig{}
		}
		b, err := hostnet.ReadLinkConfig(link)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before := has("up1")
	cfg := testConfig(dir)
	cfg.CtrlIP = netip.MustParseAddr("192.0.2.10")
	run := func(takeover bool, uplinks ...string) (*Driver, func()) {
		cfg.Takeover, cfg.Uplinks = takeover, uplinks
		d, stop := runDriver(t, cfg)
		d.Apply(drivers.Global{FwdMode: "bridge", ARPMode: "proxy"})
		d.Apply(vlanNetwork(100, "a"))
		d.Synced(drivers.SourceStore)
		return d, stop
	}
	refused := func(d *Driver) {
		t.Helper()
		eventually.True(t, "the uplink is refused", func() bool {
			err := d.Ready()
			return err != nil && strings.Contains(err.Error(), "holds the control address") && strings.Contains(err.Error(), "--takeover")
		})
	}
	d, end := run(false, "up1")
	refused(d)
	end()
	for _, uplinks := range [][]string{{"up1"}, {"up1", "up2"}} {
		d, end = run(true, uplinks...)
		ready(t, d)
		eventually.True(t, "the host's addresses are on the bridge", func() bool { return len(has(UplinkBridge).Addrs) == 2 && has("up1").Empty() })
		if got := has(UplinkBridge).MAC; got != before.MAC {
			t.Errorf("the host has the MAC %s, it had %s", got, before.MAC)
		}
		eventually.True(t, "one uplink, with the VLANs in use on both ends of the patch", func() bool { // one uplink with a number, and the VLANs in use on both ends of the patch
			d.mu.Lock()
			defer d.mu.Unlock()
			_, row, _ := d.find("Port", "name", patchToVLAN)
			_, far, _ := d.find("Port", "name", patchToUplink)
			return slices.Equal(row.Ints("trunks"), []int64{100}) && slices.Equal(far.Ints("trunks"), []int64{100}) &&
				slices.Equal(d.uplinks(), []ofnet.Uplink{{Name: patchToUplink, Port: firstUplinkOFPort}})
		})
		end()
	}
	d, end = run(false, "up1")
	refused(d)
	if diff := cmp.Diff(before, has("up1"), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("what the uplink has again is not what it had: (-want +got)\n%s", diff)
	}
	end()
	d, end = run(true, "up1")
	ready(t, d)
	end()
	d, end = run(true)
	defer end()
	ready(t, d)
	if diff := cmp.Diff(before, has("up1"), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("what the link has that is no uplink any more: (-want +got)\n%s", diff)
	}
	eventually.True(t, "the bridge of uplinks is removed", func() bool { return !veth.Exists(UplinkBridge) })
}
