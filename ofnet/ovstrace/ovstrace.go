// Package ovstrace parses the output of Open vSwitch's command ofproto/trace: which flows a
// packet matches in a bridge, and where it leaves.
//
// The text is meant for people (ovs-vswitchd(8), "ofproto/trace"); the parts that are
// parsed have had the same format since Open vSwitch 2.8. Ports must have been requested by
// name.
package ovstrace

import (
	"regexp"
	"strconv"
	"strings"
)

// Trace is a packet's path through a bridge.
type Trace struct {
	Steps []Step
	// Out are the places where it leaves, in order.
	Out []Out
	// ToAgent: a copy goes to the controller.
	ToAgent bool
	// Final holds the packet's fields at the end, with OVS's names.
	Final map[string]string
	// Notes are the switch's remarks, such as that a tunnel has no neighbor entry.
	Notes []string
}

// Step is a flow that the packet matched.
type Step struct {
	Table    int
	Priority int
	Cookie   uint64
	Match    string // empty: any packet
	Actions  []string
}

// Out is a place where the packet leaves the bridge: a port, or the end of a tunnel.
type Out struct {
	Port string
	VLAN int // tag on leaving; 0: none

	Tunnel  bool
	TunID   uint64
	TunDest string // address
}

var (
	stepLine  = regexp.MustCompile(`^\s*(\d+)\. (?:(.+), )?priority (\d+)(?:, cookie (0x[0-9a-f]+))?$`)
	fieldEdge = regexp.MustCompile(`set_field:([^ ]+)->(tun_id|tun_dst|tun_ipv6_dst)\b`)
)

// Parse parses the output of ofproto/trace for a packet in bridge.
func Parse(bridge, text string) Trace {
	p := parser{bridge: `bridge("` + bridge + `")`, t: Trace{Final: map[string]string{}}, tun: map[string]string{}}
	for line := range strings.Lines(text) {
		p.line(strings.TrimRight(line, "\n"))
	}
	return p.t
}

type parser struct {
	bridge string
	here   bool // the lines are about our bridge
	t      Trace
	vlan   int               // tag on arrival
	tun    map[string]string // tunnel fields that have been set
}

func (p *parser) line(line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "bridge("):
		p.here = line == p.bridge
	case strings.HasPrefix(line, "Flow: "):
		p.here = false
		p.fields(line[len("Flow: "):])
		p.vlan, _ = strconv.Atoi(p.t.Final["dl_vlan"]) // 0 without one
	case strings.HasPrefix(line, "Final flow: "):
		p.here = false
		if flow := line[len("Final flow: "):]; flow != "unchanged" {
			p.fields(flow)
		}
	case strings.HasPrefix(line, "Datapath actions: "):
		p.here = false
		p.leave(line[len("Datapath actions: "):])
	case !p.here || trimmed == "" || strings.HasPrefix(trimmed, "---"):
	default:
		p.inside(line, trimmed)
	}
}

// inside parses a line about a table of our bridge.
func (p *parser) inside(line, trimmed string) {
	if m := stepLine.FindStringSubmatch(line); m != nil {
		s := Step{Match: m[2]}
		s.Table, _ = strconv.Atoi(m[1]) // digits
		s.Priority, _ = strconv.Atoi(m[3])
		s.Cookie, _ = strconv.ParseUint(m[4], 0, 64)
		p.t.Steps = append(p.t.Steps, s)
		return
	}
	if len(p.t.Steps) == 0 {
		return
	}
	if m := fieldEdge.FindStringSubmatch(trimmed); m != nil {
		p.tun[m[2]], _, _ = strings.Cut(m[1], "/")
	}
	switch {
	case strings.HasPrefix(trimmed, "-> output to native tunnel"), strings.HasPrefix(trimmed, "-> output to kernel tunnel"),
		// After connection tracking, the tracer mistakes the tunnel that the packet is
		// going into for the one it came from.
		trimmed == ">> Not tunneling to our own address":
		p.tunnel()
	case strings.HasPrefix(trimmed, "-> "), trimmed == "thaw", strings.HasPrefix(trimmed, "Resuming from"):
	case strings.HasPrefix(trimmed, ">> "):
		p.t.Notes = append(p.t.Notes, trimmed[len(">> "):])
	default:
		last := &p.t.Steps[len(p.t.Steps)-1]
		last.Actions = append(last.Actions, trimmed)
	}
}

func (p *parser) tunnel() {
	out := Out{Tunnel: true, TunDest: p.tun["tun_dst"]}
	if six := p.tun["tun_ipv6_dst"]; six != "" {
		out.TunDest = six
	}
	out.TunID, _ = strconv.ParseUint(p.tun["tun_id"], 0, 64)
	p.t.Out = append(p.t.Out, out)
}

// fields parses the fields of a flow.
func (p *parser) fields(flow string) {
	p.t.Final = map[string]string{}
	for field := range strings.SplitSeq(flow, ",") {
		name, value, _ := strings.Cut(field, "=")
		p.t.Final[name] = value
	}
}

// leave parses the datapath's actions: names of ports, and changes to the packet in
// between. Tunnels are known from the tables.
func (p *parser) leave(actions string) {
	vlan := p.vlan
	for _, a := range split(actions) {
		name, arg, _ := strings.Cut(a, "(")
		switch name {
		case "push_vlan":
			vlan = vid(arg)
		case "pop_vlan":
			vlan = 0
		case "userspace":
			p.t.ToAgent = p.t.ToAgent || strings.Contains(arg, "controller(")
		case "drop", "recirc", "ct", "ct_clear", "set", "clone", "meter", "hash", "trunc", "tnl_push", "tnl_pop", "sample", "check_pkt_len":
		default:
			if arg == "" && name != "" {
				p.t.Out = append(p.t.Out, Out{Port: name, VLAN: vlan})
			}
		}
	}
}

// split splits actions at commas outside of parentheses.
func split(actions string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range actions {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out, from = append(out, actions[from:i]), i+1
		}
	}
	return append(out, actions[from:])
}

// vid is the number in "vid=100,pcp=0)".
func vid(arg string) int {
	text, ok := strings.CutPrefix(arg, "vid=")
	if !ok {
		return 0
	}
	text, _, _ = strings.Cut(strings.TrimSuffix(text, ")"), ",")
	n, _ := strconv.Atoi(text)
	return n
}
