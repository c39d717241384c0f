package ovsd

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/drivers/contract"
	"github.com/contiv/netplugin/drivers/ovsd/dnsns"
	"github.com/contiv/netplugin/drivers/ovsd/veth"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/utils/netx/netxtest"
)

// insideEnv names the directory of the switch for a test process inside that switch's
// network namespace, where links and ports do not affect the machine's own.
const insideEnv = "CONTIV_TEST_OVS_DIR"

// TestInNamespace runs the tests named Inside… in the network namespace of a switch.
func TestInNamespace(t *testing.T) {
	if os.Getenv(insideEnv) != "" {
		return
	}
	var out []byte
	t.Cleanup(func() { // at the very end, after what the switch has logged
		if t.Failed() {
			t.Log("failed inside:\n" + failures(string(out)))
		}
	})
	sw := ovstest.Start(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInside", "-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), insideEnv+"="+sw.RunDir())
	var err error
	sw.InNamespace(func() { out, err = cmd.CombinedOutput() })
	if err != nil || !strings.Contains(string(out), "PASS: TestInsideContract") {
		t.Fatalf("%s\n%v", out, err)
	}
}

// failures returns the lines of a test's output that say what failed, and where.
func failures(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "--- FAIL") || strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic:") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// inside returns the switch's directory, or false in the outer process.
func inside() (string, bool) {
	dir := os.Getenv(insideEnv)
	return dir, dir != ""
}

func testConfig(dir string) Config {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return Config{
		HostLabel: "host1", OVSDB: "unix:" + dir + "/db.sock", Datapath: "netdev",
		VTEP: netip.MustParseAddr("192.168.60.10"), EndpointPolicies: true, Log: log,
	}
}

func TestInsideContract(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	contract.Run(t, contract.Env{
		New: func(t *testing.T, sources ...drivers.Source) contract.Driver {
			cfg := testConfig(dir)
			cfg.Sources = sources
			d, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Netns: func(t *testing.T) string { return netxtest.Namespace(t) },
		LinkExists: func(t *testing.T, netns, name string) bool {
			found := false
			if err := ns.WithNetNSPath(netns, func(ns.NetNS) error { found = veth.Exists(name); return nil }); err != nil {
				t.Fatal(err)
			}
			return found
		},
		Links: func(t *testing.T) (names []string) {
			links, err := netlinksafe.LinkList()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range links {
				if _, isPort := portNumber(l.Attrs().Name); isPort {
					names = append(names, l.Attrs().Name)
				}
			}
			return names
		},
		Flows: func(t *testing.T, encap ofnet.Encap) string {
			bridge := map[ofnet.Encap]string{ofnet.VXLAN: VXLANBridge, ofnet.VLAN: VLANBridge}[encap]
			out, err := exec.CommandContext(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "--no-stats", "dump-flows", dir+"/"+bridge+".mgmt").CombinedOutput()
			if err != nil {
				t.Fatalf("%v %s", err, out)
			}
			var lines []string
			for line := range strings.Lines(string(out)) {
				_, line, _ = strings.Cut(line, ", ") // the cookie tells drivers apart
				lines = append(lines, line)
			}
			slices.Sort(lines)
			return strings.Join(lines, "")
		},
	})
}

// A driver that starts finds what its predecessor left, and sends nothing.
func TestInsideRestart(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	first, stop := runDriver(t, testConfig(dir))
	other := contract.Network
	other.ID, other.Tenant, other.VNI, other.Tag = "net1.red", "red", 10002, 2
	declare := func(d *Driver, redFirst bool) {
		networks := []drivers.Network{contract.Network, other}
		if redFirst {
			slices.Reverse(networks)
		}
		d.Apply(contract.Global)
		for _, n := range networks {
			d.Apply(n)
		}
		d.Apply(contract.Endpoint(1))
		red := contract.Endpoint(2)
		red.ID, red.Network, red.Local, red.VTEP = "net1.red-c2", other, false, netip.MustParseAddr("192.168.60.11")
		d.Apply(red)
		d.Synced(drivers.SourceStore)
	}
	declare(first, false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id := contract.Endpoint(1).ID
	port, err := first.Attach(ctx, drivers.Attachment{EndpointID: id, ContainerID: "c1", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VXLAN, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Realised(ctx, id); err != nil {
		t.Fatal(err)
	}
	ready(t, first)
	eventually.True(t, "the numbers of VRFs are stored", func() bool { return !first.vrfsUnsaved() })
	stop()

	second, stop := runDriver(t, testConfig(dir))
	declare(second, true) // the other tenant first: its VRF keeps its number all the same
	ready(t, second)
	if err := second.Realised(ctx, id); err != nil {
		t.Fatal(err)
	}
	if sent := second.bridges[ofnet.VXLAN].sw.Status().Sent; sent != 0 {
		t.Errorf("%d flow-mods sent by a driver that found everything in place", sent)
	}
	if got := second.Attachments(); len(got) != 1 || got[0].Port.OVSName != port.OVSName {
		t.Errorf("attachments %+v, expected %s", got, port.OVSName)
	}
	if a, b := first.bridges[ofnet.VXLAN].round, second.bridges[ofnet.VXLAN].round; b != a+1 {
		t.Errorf("round %d after %d", b, a)
	}
	if err := second.Detach(ctx, id); err != nil {
		t.Fatal(err)
	}
	stop()
}

// When somebody removes our bridges they come back with all their contents.
func TestInsideBridgeRemoved(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	cfg := testConfig(dir)
	cfg.NameServer = oracle{}
	d, stop := runDriver(t, cfg)
	defer stop()
	d.Apply(contract.Global)
	d.Apply(contract.Network)
	d.Synced(drivers.SourceStore)
	ready(t, d)
	if out, err := exec.CommandContext(t.Context(), "ovs-vsctl", "--db=unix:"+dir+"/db.sock", "del-br", VXLANBridge).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	eventually.True(t, "the bridge is back", func() bool {
		_, _, bridge := d.find("Bridge", "name", VXLANBridge)
		_, _, tunnel := d.find("Interface", "name", tunnelName)
		_, _, dns := d.find("Interface", "name", d.bridges[ofnet.VXLAN].dnsPort)
		return bridge && tunnel && dns && d.Ready() == nil
	})
}

func TestInsideCleanup(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	cfg := testConfig(dir)
	cfg.NameServer = oracle{}
	d, stop := runDriver(t, cfg)
	d.Apply(contract.Global)
	d.Apply(contract.Network)
	d.Synced(drivers.SourceStore)
	ready(t, d)
	eventually.True(t, "the host reaches its containers", func() bool { return d.HostReady() == nil })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	port, err := d.Attach(ctx, drivers.Attachment{EndpointID: "net1.default-x", ContainerID: "x", IfName: "eth0", Netns: netxtest.Namespace(t)}, ofnet.VXLAN, 1)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	foreign := func(args ...string) {
		if out, err := exec.CommandContext(ctx, "ovs-vsctl", append([]string{"--db=unix:" + dir + "/db.sock"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	foreign("add-br", "not-ours", "--", "set", "bridge", "not-ours", "datapath_type=netdev")
	defer foreign("--if-exists", "del-br", "not-ours")
	for _, dry := range []bool{true, false} {
		var said []string
		if err := Cleanup(ctx, testConfig(dir), dry, func(s string) { said = append(said, s) }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(said)
		want := []string{"bridge " + VLANBridge, "bridge " + VXLANBridge, "link " + port.OVSName, "namespace " + cfg.dnsNamespace(), "nftables table inet contiv"}
		if !slices.Equal(said, want) {
			t.Errorf("dry run %t: %q, expected %q", dry, said, want)
		}
	}
	if veth.Exists(port.OVSName) {
		t.Errorf("%s is still there", port.OVSName)
	}
	out, err := exec.CommandContext(ctx, "ovs-vsctl", "--db=unix:"+dir+"/db.sock", "list-br").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "not-ours" {
		t.Errorf("bridges left: %q, %v", out, err)
	}
}

// runDriver runs a driver; stop ends it and waits for its end.
func runDriver(t *testing.T, cfg Config) (d *Driver, stop func()) {
	t.Helper()
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(func() {
		stop()
		if err := dnsns.Remove(cfg.dnsNamespace()); err != nil {
			t.Error(err)
		}
	})
	return d, stop
}

func ready(t *testing.T, d *Driver) {
	t.Helper()
	eventually.Succeeds(t, "the driver is ready", d.Ready)
}

func TestInsideUplinks(t *testing.T) {
	dir, ok := inside()
	if !ok {
		return
	}
	addUplinks(t, "up1", "up2")
	cfg := testConfig(dir)
	members := func(d *Driver) (all []string) {
		for _, m := range d.uplinkPorts() {
			all = append(all, strings.Join(m, "+"))
		}
		slices.Sort(all)
		return all
	}
	for _, c := range []struct{ uplinks, want []string }{
		{[]string{"up1"}, []string{"up1"}},
		{[]string{"up1"}, []string{"up1"}},            // again: unchanged
		{[]string{"up2", "up1"}, []string{"up1+up2"}}, // a bond
		{[]string{"up2"}, []string{"up2"}},            // and back
		{nil, nil},
	} {
		cfg.Uplinks = c.uplinks
		d, stop := runDriver(t, cfg)
		d.Apply(drivers.Global{FwdMode: "bridge", ARPMode: "proxy"})
		d.Synced(drivers.SourceStore)
		ready(t, d)
		eventually.True(t, "the members of the uplink port", func() bool { return slices.Equal(members(d), c.want) })
		stop()
	}
	// A link that is down is reported as such, and comes back.
	cfg.Uplinks = []string{"up1"}
	up1, err := netlinksafe.LinkByName("up1")
	if err != nil {
		t.Fatal(err)
	}
	peer, err := netlinksafe.LinkByName("up1p")
	if err != nil {
		t.Fatal(err)
	}
	watching, end := runDriver(t, cfg)
	for _, down := range []bool{true, false, true} {
		set := netlink.LinkSetUp
		if down {
			set = netlink.LinkSetDown
		}
		if err := errors.Join(set(up1), set(peer)); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the link state of the uplink", func() bool {
			watching.mu.Lock()
			defer watching.mu.Unlock()
			return len(watching.uplinks()) == 1 && watching.uplinks()[0].Down == down
		})
	}
	end()
	cfg.Uplinks = []string{"nowhere"}
	d, stop := runDriver(t, cfg)
	defer stop()
	eventually.True(t, "the error names the missing interface", func() bool {
		err := d.Ready()
		return err != nil && strings.Contains(err.Error(), "nowhere: no such interface")
	})
}

func TestRecovered(t *testing.T) {
	up, down := ofnet.Uplink{Name: "up1", Port: 1}, ofnet.Uplink{Name: "up2", Port: 2, Down: true}
	back := ofnet.Uplink{Name: "up2", Port: 2}
	for _, c := range []struct {
		before, now []ofnet.Uplink
		want        bool
	}{
		{nil, []ofnet.Uplink{up}, false}, // the start: endpoints are announced one by one
		{[]ofnet.Uplink{down}, []ofnet.Uplink{back}, true},
		{[]ofnet.Uplink{down}, []ofnet.Uplink{down}, false},
		{[]ofnet.Uplink{up, down}, []ofnet.Uplink{up, back}, false},
		{[]ofnet.Uplink{down}, nil, false},
	} {
		if got := recovered(c.before, c.now); got != c.want {
			t.Errorf("from %v to %v: %t, expected %t", c.before, c.now, got, c.want)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{"2.17.0": true, "2.16.9": false, "3.1.0": true, "2.9": false, "": false, "x": false} {
		if got := atLeast(version, 2, 17); got != want {
			t.Errorf("%q: %t", version, got)
		}
	}
}

func TestPortNumbersAreUnique(t *testing.T) {
	n := numbers{reserved: map[int]bool{}}
	used := map[int]bool{2: true}
	seen := map[int]bool{}
	for range 5 {
		got, release := n.reserve(func(i int) bool { return used[i] })
		if seen[got] || used[got] {
			t.Errorf("number %d twice", got)
		}
		seen[got] = true
		release()
	}
}
