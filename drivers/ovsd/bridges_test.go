package ovsd

import (
	"context"
	"maps"
	"net/netip"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/drivers/ovsd/veth"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// link makes an interface with an address that lasts as long as the test.
func link(t *testing.T, name, address string, mtu int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, mtu
	l := &netlink.Veth{LinkAttrs: attrs, PeerName: name + "p"}
	if err := netlink.LinkAdd(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = veth.Remove(name) })
	if address == "" {
		return
	}
	a, err := netlink.ParseAddr(address)
	if err == nil {
		a.Flags = 2 // IFA_F_NODAD
		err = netlink.AddrAdd(l, a)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A bridge's datapath ID does not depend on its ports, so changes of ports do not drop the
// OpenFlow connection.
func TestInsideDatapathID(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	link(t, "up1", "", 1500)
	cfg := testConfig(dir)
	id := func(d *Driver) string {
		_, row, _ := d.find("Bridge", "name", VLANBridge)
		return row.String("datapath_id")
	}
	for _, uplinks := range [][]string{nil, {"up1"}, nil} {
		cfg.Uplinks = uplinks
		d, stop := runDriver(t, cfg)
		d.Apply(drivers.Global{FwdMode: "bridge", ARPMode: "proxy"})
		d.Synced(drivers.SourceStore)
		ready(t, d)
		eventually.True(t, "the uplink port and the datapath id", func() bool {
			return len(d.uplinkPorts()) == len(uplinks) && id(d) == datapathID(cfg.HostLabel, VLANBridge)
		})
		sw := d.bridges[ofnet.VLAN].sw
		before := sw.Status().Connects
		if _, err := d.db.Transact(t.Context(), addPort(VLANBridge, "x", ovsdb.Row{"name": "low"}, ovsdb.Row{"name": "low", "type": "internal", "mac": ovsdb.StringSet("00:00:00:00:00:01")})...); err != nil {
			t.Fatal(err)
		}
		var port ovsdb.UUID
		eventually.True(t, "the number of port low", func() bool {
			_, row, _ := d.find("Interface", "name", "low")
			n, _ := row.Int("ofport")
			port, _, _ = d.find("Port", "name", "low")
			return n > 0
		})
		if err := d.removePorts(t.Context(), VLANBridge, port); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "port low is removed", func() bool { _, _, there := d.find("Interface", "name", "low"); return !there })
		ready(t, d)
		if after := sw.Status().Connects; after != before || id(d) != datapathID(cfg.HostLabel, VLANBridge) {
			t.Errorf("uplinks %q: %d connections, then %d; datapath id %s", uplinks, before, after, id(d))
		}
		stop()
	}
	if datapathID("host1", VLANBridge) == datapathID("host2", VLANBridge) || datapathID("host1", VLANBridge) == datapathID("host1", VXLANBridge) {
		t.Error("two bridges have one datapath id")
	}
}

// All peers share one tunnel port, so that names cannot collide, and packets leave from the
// address that the peers know.
func TestInsideTunnelPort(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	link(t, "under0", "10.11.1.1/24", 1500)
	link(t, "under1", "2001:db8:60::1/64", 1500)
	for vtep, local := range map[string]string{"10.11.1.1": "10.11.1.1", "192.0.2.1": "", "2001:db8:60::1": "2001:db8:60::1"} {
		cfg := testConfig(dir)
		cfg.VTEP = netip.MustParseAddr(vtep)
		d, stop := runDriver(t, cfg)
		d.Apply(contract.Global)
		d.Apply(contract.Network)
		for i, host := range []string{"10.1.11.1", "10.11.1.2", "2001:db8:60::2"} {
			ep := contract.Endpoint(i + 1)
			ep.Local, ep.VTEP = false, netip.MustParseAddr(host)
			d.Apply(ep)
		}
		d.Synced(drivers.SourceStore)
		ready(t, d)
		want := map[string]string{"remote_ip": "flow", "key": "flow", "tos": "inherit", "dst_port": "4789"}
		if local != "" {
			want["local_ip"] = local
		}
		tunnels := func() (all []map[string]string) {
			d.db.View(func(v ovsdb.View) {
				v.Each("Interface", func(_ ovsdb.UUID, row ovsdb.Row) {
					if row.String("type") == "vxlan" {
						all = append(all, row.Map("options"))
					}
				})
			})
			return all
		}
		eventually.True(t, "one tunnel port with these options", func() bool { all := tunnels(); return len(all) == 1 && maps.Equal(all[0], want) })
		stop()
	}
}

// The MTU of containers follows the interface with the tunnel's address. Other interfaces
// do not count, nor do earlier values.
func TestInsideMTU(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	link(t, "under0", "10.11.1.1/24", 9000)
	link(t, "under1", "2001:db8:60::1/64", 1500)
	link(t, "other0", "10.12.1.1/24", 1280)
	link(t, "docker0", "", 576)
	cfg := testConfig(dir)
	for vtep, want := range map[string]int{"10.11.1.1": 9000 - 50, "2001:db8:60::1": 1500 - 70, "192.0.2.1": 1500 - 50} {
		cfg.VTEP = netip.MustParseAddr(vtep)
		d, stop := runDriver(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		for i := range 2 {
			id := contract.Endpoint(i + 1).ID
			a := drivers.Attachment{EndpointID: id, ContainerID: "c", IfName: "eth0", Netns: netxtest.Namespace(t)}
			port, err := d.Attach(ctx, a, ofnet.VXLAN, 1)
			if err != nil {
				t.Fatal(err)
			}
			if end, err := netlinksafe.LinkByName(port.OVSName); err != nil || port.MTU != want || end.Attrs().MTU != want {
				t.Errorf("tunnel address %s: %+v, link %+v, %v; want an MTU of %d", vtep, port, end, err, want)
			}
		}
		for i := range 2 {
			if err := d.Detach(ctx, contract.Endpoint(i+1).ID); err != nil {
				t.Error(err)
			}
		}
		cancel()
		stop()
	}
}
