package ofnet

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contiv/netplugin/ofnet/ofctrl/ovstest"
)

const pipelineDocument = "../docs/pipeline.md"

// TestPipelineDocument: the document shows the tables, stages, registers and features of
// the code, and what a real switch does with a packet. -update writes it again.
func TestPipelineDocument(t *testing.T) {
	text, err := os.ReadFile("testdata/pipeline.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for mark, made := range map[string]string{
		"stages": stagesDocument(), "tables": tablesDocument(t), "registers": registersDocument(), "features": featuresDocument(t), "walks": walks(t),
	} {
		if !strings.Contains(got, "{{"+mark+"}}") {
			t.Errorf("the template lacks {{%s}}", mark)
		}
		got = strings.ReplaceAll(got, "{{"+mark+"}}", made)
	}
	if *update {
		if err := os.WriteFile(pipelineDocument, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(pipelineDocument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), got); diff != "" {
		t.Errorf("%s is not current; run go test ./ofnet -run TestPipelineDocument -update (-there +current):\n%s", pipelineDocument, diff)
	}
	drawing, err := os.ReadFile("../docs/diagrams/pipeline.dot")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stageNames {
		if !strings.Contains(string(drawing), name+`\n`) {
			t.Errorf("docs/diagrams/pipeline.dot lacks the stage %s", name)
		}
	}
}

// fullPipeline has all features that a mode can have.
func fullPipeline(t testing.TB, mode Mode) *Pipeline {
	set := Settings{
		Encap: VLAN, Round: 1, TunnelPort: testTunnelPort, HostMAC: HostMAC(addr("192.168.60.10")), Host: testAccess, EndpointPolicies: true,
		ConnectionRate: 5000, DNS: DNSSettings{Rate: 1000, Port: testDNSPort},
	}
	if mode == VXLANBridge || mode == VXLANRouting {
		set.Encap = VXLAN
	}
	set.Routing = mode == VXLANRouting || mode == VLANRouting
	p := newPipeline(t, set)
	if p.Mode() != mode {
		t.Fatalf("mode %s, expected %s", p.Mode(), mode)
	}
	return p
}

// titles name the modes as users do.
var titles = map[Mode]string{VLANBridge: "VLAN bridge", VXLANBridge: "VXLAN bridge", VXLANRouting: "VXLAN routing", VLANRouting: "VLAN routing"}

func stagesDocument() string {
	var b strings.Builder
	b.WriteString("| stage | tables |\n|---|---|\n")
	for s := range numStages {
		var names []string
		for _, i := range tableInfos {
			if i.stage == s {
				names = append(names, i.name)
			}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", s, strings.Join(names, ", "))
	}
	return b.String()
}

func tablesDocument(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| table | what it asks or does |")
	var all []*Pipeline
	for _, m := range Modes() {
		all = append(all, fullPipeline(t, m))
		fmt.Fprintf(&b, " %s (`%s`) |", titles[m], m)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(all)) + "\n")
	for table := range numTables {
		fmt.Fprintf(&b, "| %s | %s |", table, tableInfos[table].asks)
		for _, p := range all {
			if p.layout.has(table) {
				fmt.Fprintf(&b, " %d |", p.to(table))
			} else {
				b.WriteString(" – |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func registersDocument() string {
	var b strings.Builder
	b.WriteString("| register | name | bits | holds |\n|---|---|---|---|\n")
	for r, i := range registerInfos[:regVIP+1] {
		fmt.Fprintf(&b, "| %d | %s | 0–%d | %s |\n", r, i.name, i.bits-1, i.meaning)
	}
	return b.String()
}

func featuresDocument(t *testing.T) string {
	var order []string
	tables, modes := map[string][]string{}, map[string]map[Mode]bool{}
	for _, m := range Modes() {
		for _, f := range fullPipeline(t, m).features {
			name := strings.TrimPrefix(fmt.Sprintf("%T", f), "ofnet.")
			if modes[name] == nil {
				order, modes[name] = append(order, name), map[Mode]bool{}
			}
			modes[name][m] = true
			for _, table := range f.tables() {
				if !slices.Contains(tables[name], table.String()) {
					tables[name] = append(tables[name], table.String())
				}
			}
		}
	}
	slices.Sort(order)
	var b strings.Builder
	b.WriteString("| feature | tables |")
	for _, m := range Modes() {
		fmt.Fprintf(&b, " `%s` |", m)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(Modes())) + "\n")
	for _, name := range order {
		fmt.Fprintf(&b, "| `%s` | %s |", name, strings.Join(tables[name], ", "))
		for _, m := range Modes() {
			b.WriteString(map[bool]string{true: " yes |", false: " – |"}[modes[name][m]])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// walks traces a packet through the tables of each mode on a real switch.
func walks(t *testing.T) string {
	sw := ovstest.Start(t)
	var b strings.Builder
	for _, m := range Modes() {
		p := fullPipeline(t, m)
		network := Network{ID: "net", Encap: p.set.Encap, VRF: 1, Tag: 101, Gateway4: addr("10.1.1.254")}
		if network.Encap == VXLAN {
			network.VNI = 10101
		}
		from := endpointOf(network, "from", "10.1.1.1", "", 1, "")
		to := endpointOf(network, "to", "10.1.1.6", "", 0, "192.168.60.11")
		from.Group, to.Group, from.Policed, to.Policed = 2, 3, true, true
		programs := map[string]Program{
			"base": p.Program(Base{}), "uplink": p.Program(Uplink{Name: "eth2", Port: 65010}), "host": p.Program(HostPort{Port: testHostPort}),
			"net": p.Program(network), "from": p.Program(from), "to": p.Program(to), "vrf": p.Program(VRFPolicy{VRF: 1, Generation: 5}),
			"rule": p.Program(Rule{ID: "web", Priority: 1, SrcGroup: 2, DstGroup: 3, Proto: 6, DstPort: 80}),
		}
		realBridge(t, sw, m.String(), programs)
		for name, port := range map[string]uint32{"c": 1, "up": 65010, "t": testTunnelPort} {
			sw.AddDummyPort(m.String(), m.String()+name, fmt.Sprint(port))
		}
		mac := RouterMAC
		if !p.set.Routing {
			mac = to.MAC
		}
		trace := sw.Trace(m.String(), fmt.Sprintf("in_port=1,dl_src=%s,dl_dst=%s,tcp,nw_src=10.1.1.1,nw_dst=10.1.1.6,nw_ttl=64,tcp_src=40000,tcp_dst=80", from.MAC, mac))
		fmt.Fprintf(&b, "### %s (`%s`)\n\n%s\n", titles[m], m, walk(p, trace))
	}
	return b.String()
}

var (
	traceStep = regexp.MustCompile(`^\s*(\d+)\. (?:(.*), )?priority (\d+)`)
	traceGoto = regexp.MustCompile(`(goto_table:|ct\(table=|,table=)(\d+)`)
	traceReg  = regexp.MustCompile(`NXM_NX_REG(\d+)\[(?:\d+\.\.\d+)?\]|\breg(\d+)\b`)
)

// walk makes a table of a trace.
func walk(p *Pipeline, trace string) string {
	named := func(s string) string {
		s = traceGoto.ReplaceAllStringFunc(s, func(m string) string {
			parts := traceGoto.FindStringSubmatch(m)
			n, _ := strconv.Atoi(parts[2])
			return parts[1] + p.Tables()[n]
		})
		return traceReg.ReplaceAllStringFunc(s, func(m string) string {
			parts := traceReg.FindStringSubmatch(m)
			n, _ := strconv.Atoi(parts[1] + parts[2])
			return "[" + registerInfos[n].name + "]"
		})
	}
	var b strings.Builder
	b.WriteString("| stage | table | match | actions |\n|---|---|---|---|\n")
	step, actions := "", []string(nil)
	flush := func() {
		if step != "" {
			fmt.Fprintf(&b, "%s %s |\n", step, strings.Join(actions, ", "))
		}
		step, actions = "", nil
	}
	for line := range strings.Lines(trace) {
		line = strings.TrimRight(line, "\n")
		switch m, trimmed := traceStep.FindStringSubmatch(line), strings.TrimSpace(line); {
		case m != nil:
			flush()
			n, _ := strconv.Atoi(m[1])
			match := "anything else"
			if m[2] != "" {
				match = "`" + named(m[2]) + "`"
			}
			step = fmt.Sprintf("| %s | %s | %s |", stageOf(p.Tables()[n]), p.Tables()[n], match)
		case !strings.HasPrefix(line, " "):
			flush()
		case strings.HasPrefix(trimmed, "->") || strings.HasPrefix(trimmed, ">>") || strings.HasPrefix(trimmed, "move:") && len(actions) > 0 && strings.Contains(actions[len(actions)-1], "exec("):
		case trimmed == "drop" && len(actions) > 0: // this copy; the one that is tracked continues
		case step != "":
			actions = append(actions, "`"+named(trimmed)+"`")
		}
	}
	flush()
	return b.String()
}

func stageOf(name string) stage {
	for _, i := range tableInfos {
		if i.name == name {
			return i.stage
		}
	}
	return numStages
}
