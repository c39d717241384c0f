package doctor

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contiv/netplugin/netmaster/agents"
	"github.com/contiv/netplugin/netmaster/cluster"
	"github.com/contiv/netplugin/objdb"
	"github.com/contiv/netplugin/state/clusterapi"
	"github.com/contiv/netplugin/state/doctorapi"
	"github.com/contiv/netplugin/utils/errs"
	"github.com/contiv/netplugin/utils/version"
)

// well is what an agent tells of a host on which nothing is wrong.
func well(label string) agents.Facts {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return agents.Facts{Asked: now, Answered: now.Add(20 * time.Millisecond), Host: doctorapi.Host{
		Host: label, Version: version.Get().Version, Now: now.Add(10 * time.Millisecond), Checks: map[string]string{"store": "ok"},
		Switch: doctorapi.Switch{
			Version: "3.1.0", Datapath: "netdev",
			Bridges: []doctorapi.Bridge{{Name: "contivVxlanBridge", Connected: true}},
			Ports:   []doctorapi.Port{{Name: "vvport1", Endpoint: "net.default-" + label + "-a", MTU: 1450, Tunnelled: true}},
			Tunnels: doctorapi.Tunnels{Networks: 1, MTU: 1450, VTEP: netip.MustParseAddr("192.0.2.1")},
		},
	}}
}

// twoHosts is a cluster of two hosts on which nothing is wrong.
func twoHosts() *Facts {
	f := &Facts{
		Now:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Cluster: clusterapi.Cluster{Revision: 7, Settings: 3}, Hosts: map[string]agents.Facts{}, Away: map[string]error{}, Endpoints: map[string][]string{},
	}
	for _, label := range []string{"host1", "host2"} {
		f.Hosts[label] = well(label)
		f.Endpoints[label] = []string{"net.default-" + label + "-a", "infra.default-" + label}
		f.Cluster.Hosts = append(f.Cluster.Hosts, clusterapi.Host{Host: label, State: clusterapi.Up, Revision: 7, Settings: 3})
	}
	f.Before = maps.Clone(f.Hosts)
	f.Tunnels = map[way]Arrival{{"host1", "host2"}: Arrives, {"host2", "host1"}: Arrives}
	f.StoreDelay, f.Members, f.Disk = time.Millisecond, []objdb.Member{{Name: "host1"}}, Disk{Used: 79, Total: 100}
	return f
}

// twice changes what an agent has told in both readings.
func (f *Facts) twice(label string, how func(s *doctorapi.Switch)) {
	for _, facts := range []map[string]agents.Facts{f.Before, f.Hosts} {
		h := facts[label]
		h.Switch.Ports = slices.Clone(h.Switch.Ports)
		how(&h.Switch)
		facts[label] = h
	}
}

// change changes what an agent has told.
func (f *Facts) change(label string, how func(h *agents.Facts)) {
	h := f.Hosts[label]
	how(&h)
	f.Hosts[label] = h
}

// TestChecks: each kind of trouble is found, with its weight and on its object, and nothing
// else is.
func TestChecks(t *testing.T) {
	cases := map[string]struct {
		do   func(f *Facts)
		want []string // SEVERITY CODE OBJECT: a part of the text
	}{
		"nothing":          {func(*Facts) {}, nil},
		"an agent is away": {func(f *Facts) { delete(f.Hosts, "host2"); f.Away["host2"] = errors.New("connection refused") }, []string{"error host-away host host2: connection refused"}},
		"a host is gone": {func(f *Facts) {
			delete(f.Hosts, "host2")
			f.Cluster.Hosts[1].State, f.Cluster.Hosts[1].Endpoints = clusterapi.Gone, 3
		}, []string{"error host-gone host host2: it has 3 endpoints"}},
		"a host is silent": {func(f *Facts) { f.Cluster.Hosts[1].State = clusterapi.Silent }, []string{"error host-silent host host2: does not report"}},
		"a host is behind": {func(f *Facts) { f.Cluster.Hosts[0].Revision, f.Cluster.Hosts[0].Lag = 5, 2 }, []string{"warning host-behind host host1: revision 5 and settings 3 of 7 and 3: 2 behind"}},
		"a check fails": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Checks = map[string]string{"store": "no answer", "agent": "ok"} })
		}, []string{"error agent-not-ready host host1: check store: no answer"}},
		"a clock is ahead": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Now = h.Answered.Add(2500 * time.Millisecond) })
		}, []string{"warning clock-apart host host1: its clock is 2.5s ahead of this netmaster's"}},
		"a clock is far behind": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Now = h.Asked.Add(-time.Hour) })
		}, []string{"error clock-apart host host1: its clock is 1h0m0s behind this netmaster's"}},
		"an answer was long on its way": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Now, h.Answered = h.Asked.Add(5*time.Second), h.Asked.Add(6*time.Second) })
		}, nil},
		"an older netplugin": {func(f *Facts) {
			f.change("host2", func(h *agents.Facts) { h.Version = "0.9" })
		}, []string{"warning version-differs host host2: version 0.9"}},
		"another switch": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Switch.Version = "3.3.2" })
			f.change("host2", func(h *agents.Facts) { h.Switch.Version = "3.3.2" })
		}, []string{"note ovs-untested hosts host1, host2: Open vSwitch 3.3.2"}},
		"an old switch": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Switch.Version = "2.9.1" })
		}, []string{"error ovs-old host host1: Open vSwitch 2.9.1 is too old"}},
		"a bridge": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) {
				h.Switch.Bridges = []doctorapi.Bridge{{Name: "contivVxlanBridge", Error: "refused", Refused: 1, Missing: 2, Foreign: 3, Restarts: 4}}
			})
		}, []string{
			"error flows-missing bridge contivVxlanBridge of host host1: 2 flows",
			"error flows-refused bridge contivVxlanBridge of host host1: refuses 1",
			"error switch-down bridge contivVxlanBridge of host host1: refused",
			"warning flows-foreign bridge contivVxlanBridge of host host1: 3 flows",
			"warning switch-restarted bridge contivVxlanBridge of host host1: 4 times",
		}},
		"a tunnel one way":                      {func(f *Facts) { f.Tunnels[way{"host2", "host1"}] = Lost }, []string{"error tunnel-one-way tunnel from host host2 to host host1: in this direction"}},
		"a tunnel one way, the other not tried": {func(f *Facts) { f.Tunnels = map[way]Arrival{{"host2", "host1"}: Lost} }, []string{"error tunnel-one-way tunnel from host host2 to host host1: in this direction"}},
		"a tunnel":                              {func(f *Facts) { f.Tunnels[way{"host2", "host1"}], f.Tunnels[way{"host1", "host2"}] = Lost, Lost }, []string{"error tunnel-down tunnel from host host1 to host host2: in either direction"}},
		"a tunnel for small packets":            {func(f *Facts) { f.Tunnels[way{"host2", "host1"}] = SmallOnly }, []string{"error tunnel-mtu tunnel from host host2 to host host1: smaller MTU"}},
		"an MTU": {func(f *Facts) {
			f.twice("host1", func(s *doctorapi.Switch) { s.Tunnels.MTU = 1400 })
		}, []string{"error mtu-too-large host host1: 1 containers have an MTU of up to 1450, but only 1400"}},
		"an MTU of a VLAN": {func(f *Facts) {
			f.twice("host1", func(s *doctorapi.Switch) { s.Ports[0].Tunnelled, s.Ports[0].MTU = false, 9000 })
		}, nil},
		"a port without endpoint": {func(f *Facts) { f.Endpoints["host1"] = nil }, []string{"warning port-leaked port vvport1 of host host1: endpoint net.default-host1-a, which netmaster does not know"}},
		"a port that comes just now": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) {
				h.Switch.Ports = append(h.Switch.Ports, doctorapi.Port{Name: "vvport2", Endpoint: "new"})
			})
		}, nil},
		"an endpoint without port":  {func(f *Facts) { f.Endpoints["host2"] = append(f.Endpoints["host2"], "e") }, []string{"warning endpoint-without-port endpoint e: no port on host host2"}},
		"an endpoint that goes now": {func(f *Facts) { f.change("host2", func(h *agents.Facts) { h.Switch.Ports = nil }) }, nil},
		"a container that is gone":  {func(f *Facts) { f.twice("host1", func(s *doctorapi.Switch) { s.Ports[0].Gone = true }) }, []string{"warning container-gone port vvport1 of host host1: net.default-host1-a is gone"}},
		"an interface that is gone": {func(f *Facts) { f.twice("host1", func(s *doctorapi.Switch) { s.Ports[0].Error = "no such device" }) }, []string{"error port-broken port vvport1 of host host1: no such device"}},
		"many connections": {func(f *Facts) {
			f.twice("host1", func(s *doctorapi.Switch) { s.Connections = doctorapi.Connections{Tracked: 80, Limit: 100} })
		}, []string{"warning connections-full host host1: 80 of at most 100"}},
		"all connections": {func(f *Facts) {
			f.twice("host1", func(s *doctorapi.Switch) { s.Connections = doctorapi.Connections{Tracked: 99, Limit: 100} })
		}, []string{"error connections-full host host1: 99 of at most 100"}},
		"drops at a limit": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) {
				h.Switch.Bridges = []doctorapi.Bridge{{Name: "contivVxlanBridge", Connected: true, Drops: map[string]uint64{"dns-rate": 7, "deny": 9}}}
			})
		}, []string{"warning packets-limited host host1: 7 packets were dropped while it was asked, above the rate of DNS"}},
		"a disk":          {func(f *Facts) { f.Disk = Disk{Used: 96 << 20, Total: 100 << 20} }, []string{"error disk-full store: 4 MiB left"}},
		"a slow store":    {func(f *Facts) { f.StoreDelay = 300 * time.Millisecond }, []string{"warning store-slow store: 300ms"}},
		"a stalled store": {func(f *Facts) { f.StoreDelay = 2 * time.Second }, []string{"error store-slow store: 2s"}},
		"a lost member": {func(f *Facts) {
			f.Members = []objdb.Member{{Name: "host1"}, {Name: "host2", Err: "refused"}, {Name: "host3"}}
		}, []string{"error store-member-lost store member host2: refused; the store has 3 members and needs 2"}},
		"a member that lags, and alarms": {func(f *Facts) {
			f.Members = []objdb.Member{{Name: "a", Leads: true}, {Name: "b", Behind: 5001, Alarms: []string{"NOSPACE", "CORRUPT", "NEW"}}, {Name: "c", Behind: 5000}}
		}, []string{
			"error store-alarm store member b: the alarm NEW", "error store-corrupt store member b: data differs", "error store-no-space store member b: nothing can be changed",
			"warning store-member-behind store member b: 5001 entries",
		}},
		"netmasters": {func(f *Facts) {
			f.Masters = []Master{
				{Master: cluster.Master{Address: "192.0.2.1:9999", Version: version.Get().Version}},
				{Master: cluster.Master{Address: "192.0.2.2:9999", Version: "0.9"}},
				{Master: cluster.Master{Address: "192.0.2.3:9999"}, Err: "refused"},
				{Master: cluster.Master{Address: "192.0.2.4:9999", Gone: f.Now}},
			}
		}, []string{
			"error netmaster-unreachable netmaster 192.0.2.3:9999: refused", "warning netmaster-gone netmaster 192.0.2.4:9999: since 2026-01-02T03:04:05Z",
			"warning netmaster-version netmaster 192.0.2.2:9999: version 0.9",
		}},
		"an audit file": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Notes = map[string]string{"audit": "no space left", "other": "x"} })
		}, []string{"error audit-file host host1: no space left"}},
		"an authority": {func(f *Facts) {
			f.Authority = &doctorapi.Certificate{To: f.Now.Add(89 * 24 * time.Hour)}
		}, []string{"warning authority-ends certificate authority: 2026-04-01"}},
		"an authority in its time": {func(f *Facts) { f.Authority = &doctorapi.Certificate{To: f.Now.Add(91 * 24 * time.Hour)} }, nil},
		"a certificate": {func(f *Facts) {
			f.Certificate = &doctorapi.Certificate{From: f.Now.Add(-80 * time.Hour), To: f.Now.Add(20 * time.Hour)}
		}, []string{"warning certificate-ends netmaster: 2026-01-02T23:04:05Z and should"}},
		"a certificate in its time": {func(f *Facts) {
			f.Certificate = &doctorapi.Certificate{From: f.Now.Add(-70 * time.Hour), To: f.Now.Add(30 * time.Hour)}
		}, nil},
		"a certificate that has ended": {func(f *Facts) {
			f.change("host2", func(h *agents.Facts) {
				h.Certificate = &doctorapi.Certificate{From: f.Now.Add(-2 * time.Hour), To: f.Now.Add(-time.Hour)}
			})
		}, []string{"error certificate-ends host host2: has ended at 2026-01-02T02:04:05Z"}},
		"a switch that does not tell all": {func(f *Facts) {
			f.change("host1", func(h *agents.Facts) { h.Switch.Errors = []string{"count connections: no answer"} })
		}, []string{"warning switch-unknown host host1: count connections: no answer"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := twoHosts()
			c.do(f)
			got, made := Examine(f)
			if len(made) != len(checks()) {
				t.Errorf("made were %v", made)
			}
			if len(got) != len(c.want) {
				t.Fatalf("findings: %+v", got)
			}
			for i, want := range c.want {
				what, text, _ := strings.Cut(want, ": ")
				if have := string(got[i].Severity) + " " + got[i].Code + " " + got[i].Object; have != what || !strings.Contains(got[i].Text, text) || got[i].Do == "" {
					t.Errorf("%s: %+v, want %s", have, got[i], want)
				}
			}
		})
	}
}

// TestCodesAreDescribed: docs/operations.md has a line for each code, and no other.
func TestCodesAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(page), "\n## netctl doctor\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	var described []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(chapter, -1) {
		described = append(described, m[1])
	}
	var used []string
	for _, dir := range []string{".", "../../cmd/netctl/internal/commands"} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file.Name(), "_test.go") || !strings.HasSuffix(file.Name(), ".go") || dir != "." && file.Name() != "doctor.go" {
				continue
			}
			text, err := os.ReadFile(dir + "/" + file.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?:find\(|Code: |Code, find.Severity = )"([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
				used = append(used, m[1])
			}
		}
	}
	slices.Sort(described)
	slices.Sort(used)
	if used = slices.Compact(used); !found || !slices.Equal(used, described) {
		t.Errorf("codes in use:\n%v\nand in docs/operations.md:\n%v", used, described)
	}
}

// someAgents answer for host1 only.
type someAgents struct{ asked []string }

func (a *someAgents) Facts(_ context.Context, hosts []string) (map[string]agents.Facts, map[string]error) {
	a.asked = hosts
	facts, away := map[string]agents.Facts{}, map[string]error{}
	for _, label := range hosts {
		if label == "host1" {
			facts[label] = well(label)
		} else {
			away[label] = errors.New("the agent does not answer")
		}
	}
	return facts, away
}

func (*someAgents) Probe(context.Context, map[string]doctorapi.Probe) map[string]error { return nil }

// TestRun: hosts that are away are told, and the others examined; only hosts that are named
// are asked, and hosts that are not registered never.
func TestRun(t *testing.T) {
	a := &someAgents{}
	cfg := Config{
		Agents: a,
		Cluster: func(context.Context) (*clusterapi.Cluster, error) {
			return &clusterapi.Cluster{Hosts: []clusterapi.Host{
				{Host: "host1", State: clusterapi.Up}, {Host: "host2", State: clusterapi.Up}, {Host: "host3", State: clusterapi.Gone},
			}}, nil
		},
		Applied:     func(context.Context, int64, int64) clusterapi.Applied { return clusterapi.Applied{} },
		EndpointsOf: func(host string) []string { return []string{"net.default-" + host + "-a"} },
	}
	r, err := Run(t.Context(), cfg, nil)
	if err != nil || !slices.Equal(a.asked, []string{"host1", "host2"}) || !slices.Equal(r.Asked, []string{"host1"}) ||
		len(r.Away) != 1 || r.Away[0].Host != "host2" || len(r.Checks) == 0 {
		t.Errorf("asked were %v: %+v, %v", a.asked, r, err)
	}
	if r, err := Run(t.Context(), cfg, []string{"host2"}); err != nil || !slices.Equal(a.asked, []string{"host2"}) || len(r.Findings) != 1 {
		t.Errorf("asked were %v: %+v, %v", a.asked, r, err)
	}
	if _, err := Run(t.Context(), cfg, []string{"host9"}); !errs.Is(err, errs.NotFound) {
		t.Errorf("a host that nobody knows: %v", err)
	}
}

// wires carry probes between hosts; lost and narrow name the ways that do not, or no large ones.
type wires struct {
	lost, narrow map[way]bool
	facts        map[string]agents.Facts
}

func (w *wires) Facts(_ context.Context, hosts []string) (map[string]agents.Facts, map[string]error) {
	out := map[string]agents.Facts{}
	for _, label := range hosts {
		h := w.facts[label]
		h.Switch.Tunnels.Peers = slices.Clone(h.Switch.Tunnels.Peers)
		out[label] = h
	}
	return out, map[string]error{}
}

func (w *wires) Probe(_ context.Context, probes map[string]doctorapi.Probe) map[string]error {
	for from, p := range probes {
		for to, h := range w.facts {
			along := way{from, to}
			if !slices.Contains(p.Peers, h.Switch.Tunnels.VTEP) || w.lost[along] || w.narrow[along] && p.Size > doctorapi.MinSize {
				continue
			}
			for i := range h.Switch.Tunnels.Peers {
				if peer := &h.Switch.Tunnels.Peers[i]; peer.VTEP == w.facts[from].Switch.Tunnels.VTEP {
					peer.Packets, peer.Bytes = peer.Packets+uint64(p.Count), peer.Bytes+uint64(p.Count*(p.Size+14))
				}
			}
		}
	}
	return nil
}

// TestProber: it finds which ways lose all frames, and which only large ones.
func TestProber(t *testing.T) {
	w := &wires{lost: map[way]bool{{"h1", "h2"}: true}, narrow: map[way]bool{{"h2", "h3"}: true}, facts: map[string]agents.Facts{}}
	vteps := map[string]netip.Addr{"h1": netip.MustParseAddr("192.0.2.1"), "h2": netip.MustParseAddr("192.0.2.2"), "h3": netip.MustParseAddr("2001:db8::3")}
	for label, vtep := range vteps {
		h := agents.Facts{Host: doctorapi.Host{Switch: doctorapi.Switch{Tunnels: doctorapi.Tunnels{Networks: 1, VTEP: vtep, MTU: 1450}}}}
		for _, peer := range vteps {
			if peer != vtep {
				h.Switch.Tunnels.Peers = append(h.Switch.Tunnels.Peers, doctorapi.Peer{VTEP: peer, Packets: 5, Bytes: 500})
			}
		}
		w.facts[label] = h
	}
	before, _ := w.Facts(t.Context(), []string{"h1", "h2", "h3"})
	got, _ := newProber(w, before).run(t.Context())
	want := map[way]Arrival{
		{"h1", "h2"}: Lost, {"h2", "h1"}: Arrives, {"h1", "h3"}: Arrives, {"h3", "h1"}: Arrives, {"h2", "h3"}: SmallOnly, {"h3", "h2"}: Arrives,
	}
	if !maps.Equal(got, want) {
		t.Errorf("ways: %v, want %v", got, want)
	}
	if p := newProber(w, map[string]agents.Facts{"h1": before["h1"]}); p != nil {
		t.Errorf("a host alone has tunnels to try: %+v", p.ways())
	}
}
