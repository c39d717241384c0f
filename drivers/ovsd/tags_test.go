package ovsd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// In a fabric that identifies groups by VLANs an endpoint's port is in its group's VLAN, in
// whatever order group and port were declared, and that VLAN leads to the network.
func TestInsideGroupVLAN(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	d, stop := runDriver(t, testConfig(dir))
	defer stop()
	g := contract.Global
	g.FwdMode = "bridge"
	d.Apply(g)
	n := contract.Network
	n.ID, n.Encap, n.Tag, n.VNI = "office.default", ofnet.VLAN, 101, 0
	d.Apply(n)
	e := contract.Endpoint(7)
	e.ID, e.Network = "office.default-c7", n
	d.Apply(e)
	d.Synced(drivers.SourceStore)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	port, err := d.Attach(ctx, drivers.Attachment{EndpointID: e.ID, ContainerID: "c7", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VLAN, n.Tag)
	if err != nil {
		t.Fatal(err)
	}
	leads := func(tag string) bool {
		for _, f := range d.bridges[ofnet.VLAN].sw.Flows() {
			if strings.Contains(f.String(), "dl_vlan="+tag+" ") {
				return true
			}
		}
		return false
	}
	expect := func(what string, tag int64, group bool) {
		t.Helper()
		if err := d.Realised(ctx, e.ID); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		_, row, _ := d.find("Port", "name", port.OVSName)
		if got, _ := row.Int("tag"); got != tag {
			t.Errorf("%s: the port is in VLAN %d, want %d", what, got, tag)
		}
		if leads("201") != group {
			t.Errorf("%s: VLAN 201 leads to the network: %t, want %t", what, !group, group)
		}
	}
	expect("in the network's VLAN", 101, false)
	e.Tag = 201
	d.Apply(e)
	expect("in the group's", 201, true)
	e.Tag = 0
	d.Apply(e)
	expect("in the network's again", 101, false)
	e.Tag = 201
	d.Apply(e)
	if err := d.Detach(ctx, e.ID); err != nil {
		t.Fatal(err)
	}
	for leads("201") {
		if ctx.Err() != nil {
			t.Fatal("the group's VLAN leads to the network although nobody is in it")
		}
		time.Sleep(time.Millisecond)
	}
	again, err := d.Attach(ctx, drivers.Attachment{EndpointID: e.ID, ContainerID: "c7", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VLAN, n.Tag)
	if err != nil {
		t.Fatal(err)
	}
	port = again
	expect("attached with a known group", 201, true)
	d.Delete(drivers.KindEndpoint, e.ID)
	if err := d.drained(ctx); err != nil {
		t.Fatal(err)
	}
	if leads("201") {
		t.Error("the group's VLAN leads to the network although the endpoint is gone")
	}
	if err := d.Detach(ctx, e.ID); err != nil {
		t.Fatal(err)
	}
}
