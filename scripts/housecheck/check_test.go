package main

import "testing"

func TestCheck(t *testing.T) {
	tests := []struct {
		name, file, source string
		want               []string
	}{
		{name: "downward", file: "drivers/ovsd/a.go", source: `import _ "github.com/contiv/netplugin/ofnet/ofctrl"`},
		{
			name: "upward", file: "ofnet/a.go", source: `import _ "github.com/contiv/netplugin/drivers/ovsd"`,
			want: []string{"ofnet/a.go:2: ofnet must not import drivers/ovsd"},
		},
		{
			name: "daemons apart", file: "netplugin/agent/a.go", source: `import _ "github.com/contiv/netplugin/netmaster/ipam"`,
			want: []string{"netplugin/agent/a.go:2: netplugin must not import netmaster/ipam"},
		},
		{
			name: "the agent and its runtimes", file: "netplugin/agent/a.go", source: `import _ "github.com/contiv/netplugin/mgmtfn/cni"`,
			want: []string{"netplugin/agent/a.go:2: netplugin must not import mgmtfn/cni"},
		},
		{
			name: "runtimes and the agent", file: "mgmtfn/cni/a.go", source: `import _ "github.com/contiv/netplugin/netplugin/agent"`,
			want: []string{"mgmtfn/cni/a.go:2: mgmtfn must not import netplugin/agent"},
		},
		{name: "same folder", file: "utils/a/a.go", source: `import _ "github.com/contiv/netplugin/utils/b"`},
		{
			name: "new folder", file: "novel/a.go", source: `import _ "github.com/contiv/netplugin/utils/b"`,
			want: []string{"novel/a.go:2: folder novel has no rule about imports: add one to scripts/housecheck/rules.go"},
		},
		{
			name: "store client outside objdb", file: "state/a.go", source: `import _ "go.etcd.io/etcd/client/v3"`,
			want: []string{"state/a.go:2: go.etcd.io/etcd/client/v3 may be imported in objdb only"},
		},
		{name: "store client in objdb", file: "objdb/etcd/a.go", source: `import _ "go.etcd.io/etcd/client/v3"`},
		{
			name: "codec on its own", file: "libopenflow/a.go", source: `import _ "github.com/sirupsen/logrus"`,
			want: []string{"libopenflow/a.go:2: libopenflow uses the standard library only, not github.com/sirupsen/logrus"},
		},
		{
			name: "endings", file: "state/a.go", source: "import (\n\"os\"\n\"time\"\nl \"log\"\n)\nfunc f() {\nos.Exit(1)\ntime.Sleep(1)\nl.Fatal()\npanic(1)\nx.Fatalf()\n}",
			want: []string{
				"state/a.go:8: return an error instead of calling Exit",
				"state/a.go:9: wait for an event with a context instead of time.Sleep",
				"state/a.go:10: return an error instead of calling Fatal",
				"state/a.go:11: return an error instead of panic",
				"state/a.go:12: return an error instead of calling Fatalf",
			},
		},
		{
			name: "broadcast by hand", file: "state/a.go",
			source: "func f() {\nclose(a.b)\na.b = make(chan struct{})\nclose(c)\nd = make(chan struct{})\nselect {\ncase <-x:\nclose(c)\nc = make(chan int, 1)\n}\n}",
			want:   []string{"state/a.go:3: " + useSignal, "state/a.go:9: " + useSignal},
		},
		{
			name: "doubled waits", file: "state/a.go",
			source: "func f() {\nwait = min(2*wait, slowest)\na.wait = min(a.wait*2+1, slowest)\nwait = min(2*other, slowest)\nsaid, wait = true, min(2*wait, x)\n}",
			want:   []string{"state/a.go:3: " + useRetry, "state/a.go:4: " + useRetry, "state/a.go:6: " + useRetry},
		},
		{
			name: "dumps of the kernel", file: "drivers/a.go",
			source: "import (\n\"github.com/vishvananda/netlink\"\n\"github.com/containernetworking/plugins/pkg/netlinksafe\"\n\"github.com/contiv/netplugin/utils/netx\"\n)\n" +
				"func f() {\nnetlink.RouteList()\nnetlinksafe.RouteList()\nnetlink.NeighList()\nnetx.ListSafely(func() { return netlink.NeighList() })\nnetlink.LinkByIndex()\n}",
			want: []string{
				"drivers/a.go:8: use netlinksafe.RouteList instead of netlink.RouteList: an interrupted dump is no answer",
				"drivers/a.go:10: call netlink.NeighList in netx.ListSafely: an interrupted dump is no answer",
			},
		},
		{name: "commands end", file: "cmd/x/main.go", source: "import \"os\"\nfunc f() { os.Exit(1) }"},
		{name: "helpers of tests", file: "objdb/contract/a.go", source: "import \"testing\"\nfunc f(t *testing.T) { t.Fatal() }"},
		{name: "tests import anything", file: "ofnet/a_test.go", source: `import _ "github.com/contiv/netplugin/netmaster"`},
		{name: "the lab too", file: "test/lab/a.go", source: `import _ "github.com/contiv/netplugin/netmaster"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := writeTree(t, map[string]string{tt.file: "package p\n" + tt.source + "\n"})
			wantFindings(t, root, checkCode, tt.want...)
		})
	}
}
