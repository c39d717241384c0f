package ovsd

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/test/eventually"
)

// Several uplinks form a bond. Their state follows LACP where the partner speaks it; the
// bond works without it too.
func TestInsideBond(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	addUplinks(t, "up1", "up2")
	vsctl := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ovs-vsctl", append([]string{"--db=unix:" + dir + "/db.sock", "--timeout=60"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	vsctl("add-br", "partner", "--", "set", "bridge", "partner", "datapath_type=netdev",
		"--", "add-bond", "partner", "pbond", "up1p", "up2p", "bond_mode=balance-slb", "lacp=off")
	defer vsctl("del-br", "partner")
	cfg := testConfig(dir)
	cfg.Uplinks = []string{"up1", "up2"}
	d, stop := runDriver(t, cfg)
	defer stop()
	d.Apply(drivers.Global{FwdMode: "bridge", ARPMode: "proxy"})
	d.Synced(drivers.SourceStore)
	ready(t, d)
	down := func(want ...bool) {
		t.Helper()
		eventually.True(t, "the states of the uplinks", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return slices.EqualFunc(d.uplinks(), want, func(u ofnet.Uplink, down bool) bool { return u.Down == down })
		})
	}
	current := func(want ...bool) {
		t.Helper()
		eventually.True(t, "what LACP says of the members", func() bool {
			var got []bool
			for _, name := range cfg.Uplinks {
				_, row, _ := d.find("Interface", "name", name)
				is, known := row.Bool("lacp_current")
				got = append(got, known && is)
			}
			return slices.Equal(got, want)
		})
	}
	current(false, false)
	down(false, false) // the fallback
	vsctl("set", "port", "pbond", "lacp=active", "bond_mode=balance-tcp", "other_config:lacp-time=fast")
	current(true, true)
	down(false, false)
	out, err := exec.CommandContext(t.Context(), "ovs-appctl", "-t", dir+"/ovs-vswitchd.ctl", "bond/show", uplinkEndpoint).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "lacp_status: negotiated") || !strings.Contains(string(out), "bond_mode: balance-tcp") {
		t.Errorf("the bond: %v\n%s", err, out)
	}
	link, err := netlinksafe.LinkByName("up1p")
	if err == nil {
		err = netlink.LinkSetDown(link)
	}
	if err != nil {
		t.Fatal(err)
	}
	down(true, false)
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	down(false, false)
	current(true, true)
}
