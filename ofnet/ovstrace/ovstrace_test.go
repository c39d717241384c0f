package ovstrace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Output of real switches is parsed.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		file, bridge string
		tables       []int
		out          []Out
		toAgent      bool
		notes        []string
		final        map[string]string // some of the fields
	}{
		{
			"tunnel.txt", "contivVxlanBridge",
			[]int{0, 1, 3, 9, 19, 20, 21, 22, 23, 28, 29, 30},
			[]Out{{Tunnel: true, TunID: 1, TunDest: "192.168.60.11"}},
			false, nil,
			map[string]string{"dl_src": "00:00:11:11:11:11", "nw_dst": "10.1.1.2", "tp_dst": "80", "nw_ttl": "64"},
		},
		{
			"vlan.txt", "contivVlanBridge",
			[]int{0, 2, 4, 9, 19, 20, 21, 22, 23, 28, 29},
			[]Out{{Port: "eth2", VLAN: 100}},
			false, nil,
			map[string]string{"dl_dst": "02:02:28:01:01:02", "icmp_type": "0"},
		},
		{
			"native.txt", "contivVxlanBridge",
			[]int{0},
			[]Out{{Tunnel: true, TunID: 1, TunDest: "2001:db8::11"}},
			true,
			[]string{"neighbor cache miss for 2001:db8::11 on bridge br-ext, sending ARP request"},
			map[string]string{"tp_dst": "53"},
		},
		{"vlan.txt", "another", nil, []Out{{Port: "eth2", VLAN: 100}}, false, nil, nil},
	} {
		t.Run(c.file+" "+c.bridge, func(t *testing.T) {
			tr := Parse(c.bridge, read(t, c.file))
			var tables []int
			for _, s := range tr.Steps {
				tables = append(tables, s.Table)
			}
			if diff := cmp.Diff(c.tables, tables); diff != "" {
				t.Errorf("tables, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.out, tr.Out); diff != "" {
				t.Errorf("out, -want +got:\n%s", diff)
			}
			if tr.ToAgent != c.toAgent {
				t.Errorf("to the agent: %t", tr.ToAgent)
			}
			if diff := cmp.Diff(c.notes, tr.Notes); diff != "" {
				t.Errorf("notes, -want +got:\n%s", diff)
			}
			for name, want := range c.final {
				if tr.Final[name] != want {
					t.Errorf("%s is %q in the end, want %q", name, tr.Final[name], want)
				}
			}
		})
	}
}

// A step contains all parts of a flow.
func TestStep(t *testing.T) {
	tr := Parse("contivVxlanBridge", read(t, "tunnel.txt"))
	want := Step{
		Table: 23, Priority: 30, Cookie: 0x1080012ee6ac9, Match: "tcp,reg4=0x1,tp_dst=80",
		Actions: []string{
			"ct(commit,zone=NXM_NX_REG2[0..15],exec(move:NXM_NX_REG9[]->NXM_NX_CT_MARK[]))", "move:NXM_NX_REG9[]->NXM_NX_CT_MARK[]", "goto_table:28",
		},
	}
	for _, s := range tr.Steps {
		if s.Table == want.Table {
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			return
		}
	}
	t.Error("no step in table 23")
}

// Tags are added and removed on the way to the ports.
func TestLeave(t *testing.T) {
	tr := Parse("br", "Flow: ip,in_port=eth2,dl_vlan=100,dl_vlan_pcp=0\nDatapath actions: pop_vlan,vvport1,push_vlan(vid=200,pcp=0),eth3,clone(set(eth(src=1)),eth9),drop\n")
	if diff := cmp.Diff([]Out{{Port: "vvport1"}, {Port: "eth3", VLAN: 200}}, tr.Out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if tr = Parse("br", "Flow: ip,in_port=eth2,dl_vlan=100\nDatapath actions: eth3\n"); tr.Out[0].VLAN != 100 {
		t.Errorf("a tag that stays: %+v", tr.Out)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"tunnel.txt", "vlan.txt", "native.txt"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(_ *testing.T, text string) { Parse("contivVxlanBridge", text) })
}
