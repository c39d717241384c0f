package systemtests

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/test/eventually"
	"github.com/contiv/netplugin/test/lab"
)

var updateDocs = flag.Bool("update-docs", false, "write the tables of docs that tests compare")

const sourceTable = "../../docs/source-protection.md"

// TestContainersSendOnlyTheirOwn sends every kind of frame from a container, in every
// mode, and looks at everybody else's interface, the host's and the next host's cable: what is not the
// container's own is seen nowhere, and the rest where docs/source-protection.md says.
func TestContainersSendOnlyTheirOwn(t *testing.T) {
	modes := []struct {
		name, netmode, fwdmode, encap string
		flags                         []string
	}{
		{"VXLAN routing", "vxlan", "routing", "vxlan", nil},
		{"VXLAN bridge", "vlan", "bridge", "vxlan", nil},
		{"VLAN routing", "vlan", "routing", "vlan", nil},
		{"VLAN bridge", "vlan", "bridge", "vlan", nil},
		{"VXLAN bridge, `ALLOW_SPOOFING`", "vlan", "bridge", "vxlan", []string{"--allow-spoofing"}},
	}
	all := kinds()
	table := make([][]string, len(all))
	header := "| what a container sends |"
	for _, m := range modes {
		header += " " + m.name + " |"
		t.Run(m.name, func(t *testing.T) {
			c := up(t, lab.Config{Hosts: 2, NetMode: m.netmode, FwdMode: m.fwdmode, AgentFlags: m.flags})
			for n, name := range []string{"front", "back"} {
				c.netctl("net", "create", name, "--encap", m.encap, fmt.Sprintf("--subnet=20.1.%d.0/24", n+1), fmt.Sprintf("--gateway=20.1.%d.254", n+1),
					fmt.Sprintf("--subnetv6=2001:db8:%d::/100", n+1), fmt.Sprintf("--gatewayv6=2001:db8:%d::fe", n+1))
			}
			from, near := c.attach("host1", "from", "front"), c.attach("host1", "near", "front")
			far, other := c.attach("host2", "far", "front"), c.attach("host1", "other", "back")
			c.reaches("from", near.IPv4)
			c.reaches("from", far.IPv4)
			hostPort, cable := "contivh0", "eth1"
			if m.encap == "vlan" {
				hostPort, cable = "contivhv0", "eth2"
			}
			out := c.wire("from", "eth0")
			seen := map[string]*wire{
				"near": c.wire("near", "eth0"), "far": c.wire("far", "eth0"), "other": c.wire("other", "eth0"),
				"host": c.wire("host1", hostPort), "underlay": c.wire("host2", cable),
			}
			s := senderOf(from, near)
			mark := func(i int) []byte { return fmt.Appendf(nil, "<k%05d>", i) }
			for i, k := range all {
				if err := out.send(k.frame(s, mark(i))); err != nil {
					t.Fatalf("%s: %v", k.name, err)
				}
			}
			// The switch keeps the order of what it gets from a port: when these have
			// arrived, nothing sent before is on its way.
			last := []byte("<the last>")
			private := "172.19.255.254"
			for to, frame := range map[string][]byte{
				"near": udpFrame(from.MAC, near.MAC, from.IPv4, near.IPv4, 1000, last),
				"far":  udpFrame(from.MAC, far.MAC, from.IPv4, far.IPv4, 1000, last),
				"host": udpFrame(from.MAC, near.MAC, from.IPv4, private, 1000, last),
			} {
				if err := out.send(frame); err != nil {
					t.Fatal(err)
				}
				c.waits(seen[to], last, "the last frame to "+to)
			}
			if m.fwdmode == "routing" {
				if err := out.send(udpFrame(from.MAC, near.MAC, from.IPv4, other.IPv4, 1000, last)); err != nil {
					t.Fatal(err)
				}
				c.waits(seen["other"], last, "the last frame to the other network")
			}
			if c.Config().Datapath == lab.DatapathKernel { // what it has no flow for comes later than that
				quiet(seen)
			}
			for i, k := range all {
				var where []string
				for name, w := range seen {
					if w.saw(mark(i)) != nil {
						where = append(where, name)
					}
				}
				slices.Sort(where)
				if len(where) > 0 && k.foreign && m.flags == nil {
					t.Errorf("%s: seen by %s", k.name, strings.Join(where, ", "))
				}
				cell := strings.Join(where, ", ")
				if cell == "" {
					cell = "–"
				}
				table[i] = append(table[i], cell)
			}
		})
	}
	if t.Failed() {
		return
	}
	lines := []string{header, "|---|" + strings.Repeat("---|", len(modes))}
	for _, part := range []struct {
		title   string
		foreign bool
	}{{"*its own*", false}, {"*not its own, or a router's*", true}} {
		lines = append(lines, "| "+part.title+" |"+strings.Repeat(" |", len(modes)))
		for i, k := range all {
			if k.foreign == part.foreign {
				lines = append(lines, "| "+k.name+" | "+strings.Join(table[i], " | ")+" |")
			}
		}
	}
	compareTable(t, sourceTable, strings.Join(lines, "\n")+"\n")
}

// quiet returns when nothing has been seen for a while.
func quiet(wires map[string]*wire) {
	pause := eventually.Scaled(time.Second)
	for last, since := -1, time.Now(); time.Since(since) < pause; time.Sleep(50 * time.Millisecond) {
		count := 0
		for _, w := range wires {
			count += w.count()
		}
		if count != last {
			last, since = count, time.Now()
		}
	}
}

// compareTable holds that the table of a page is the one given, or writes it.
func compareTable(t *testing.T, path, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- table: made by the test -->\n", "<!-- end of the table -->\n"
	head, rest, found := strings.Cut(string(page), begin)
	have, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s: the table's comments are missing", path)
	}
	if *updateDocs {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s (-seen +written; -update-docs writes it):\n%s", path, diff)
	}
}
