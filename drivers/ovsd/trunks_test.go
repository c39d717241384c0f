package ovsd

import (
	"context"
	"slices"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/drivers/ovsd/veth"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

func TestTrunkChange(t *testing.T) {
	for _, c := range []struct {
		name     string
		wanted   []int64
		have     []int64
		complete bool
		want     ovsdb.Set // nil: no change
	}{
		{"as wanted", []int64{100, 200}, []int64{100, 200}, true, nil},
		{"one more", []int64{100, 200}, []int64{100}, true, ovsdb.Set{100, 200}},
		{"one less", []int64{100}, []int64{100, 200}, true, ovsdb.Set{100}},
		{"all, at the end of the start", []int64{100}, nil, true, ovsdb.Set{100}},
		{"all, during the start", []int64{100}, nil, false, nil},
		{"not declared yet", []int64{100}, []int64{100, 200}, false, nil},
		{"new, during the start", []int64{100, 300}, []int64{100, 200}, false, ovsdb.Set{100, 300, 200}},
	} {
		wanted := map[int64]bool{}
		for _, tag := range c.wanted {
			wanted[tag] = true
		}
		if diff := cmp.Diff(c.want, trunkChange(wanted, c.have, c.complete)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// addUplinks creates links for uplinks, whose peers have the same name with a p appended,
// and sets all of them up.
func addUplinks(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name + "p"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = veth.Remove(name) })
		for _, end := range []string{name, name + "p"} {
			link, err := netlinksafe.LinkByName(end)
			if err == nil {
				err = netlink.LinkSetUp(link)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func vlanNetwork(tag uint16, id string) drivers.Network {
	n := contract.Network
	n.ID, n.Name, n.Encap, n.Tag, n.VNI = id+".default", id, ofnet.VLAN, tag, 0
	return n
}

// The uplink carries the VLANs in use and no others: those of networks, those of groups
// with endpoints here, and untagged frames for the router. A start removes none.
func TestInsideTrunks(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	addUplinks(t, "up1")
	cfg := testConfig(dir)
	cfg.Uplinks = []string{"up1"}
	run := func() (*Driver, func()) {
		d, stop := runDriver(t, cfg)
		d.Apply(drivers.Global{FwdMode: "bridge", ARPMode: "proxy"})
		return d, stop
	}
	trunks := func(d *Driver) (all []int64) {
		d.db.View(func(v ovsdb.View) {
			for id := range uplinkPorts(v) {
				row, _ := v.Row("Port", id)
				all = row.Ints("trunks")
			}
		})
		return all
	}
	expect := func(d *Driver, want ...int64) {
		t.Helper()
		eventually.True(t, "the trunks of the uplink", func() bool { return slices.Equal(trunks(d), want) })
	}
	d, stop := run()
	d.Synced(drivers.SourceStore)
	ready(t, d)
	expect(d, untagged)
	d.Apply(vlanNetwork(200, "b"))
	d.Apply(contract.Network) // not a VLAN
	expect(d, 200)
	d.Apply(vlanNetwork(100, "a"))
	expect(d, 100, 200)
	d.Apply(drivers.Global{FwdMode: "routing", ARPMode: "proxy"})
	expect(d, untagged, 100, 200)
	d.Apply(drivers.Global{FwdMode: "bridge", ARPMode: "proxy"})
	expect(d, 100, 200)

	// A group of the fabric, and a port of a network that is declared later.
	e := contract.Endpoint(7)
	e.ID, e.Network = "a.default-c7", vlanNetwork(100, "a")
	e.Tag = 201
	d.Apply(e)
	expect(d, 100, 200, 201)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := d.Attach(ctx, drivers.Attachment{EndpointID: "late.default-c8", ContainerID: "c8", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VLAN, 300); err != nil {
		t.Fatal(err)
	}
	if got := trunks(d); !slices.Contains(got, 300) {
		t.Errorf("the uplink carries %v when there is a port in VLAN 300", got)
	}
	stop()

	d, stop = run()
	defer stop()
	ready(t, d)
	d.Apply(vlanNetwork(400, "c"))
	expect(d, 100, 200, 201, 300, 400)
	d.Synced(drivers.SourceStore)
	expect(d, 300, 400)
	if err := d.Detach(ctx, "late.default-c8"); err != nil {
		t.Fatal(err)
	}
	expect(d, 400)
	d.Delete(drivers.KindNetwork, "c.default")
	expect(d, untagged)
}
