package ofnet

import (
	"fmt"
	"net/netip"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
)

// Settings choose a pipeline.
type Settings struct {
	Encap    Encap
	Routing  bool // forward by IP address; otherwise by MAC address
	ARPFlood bool // bridge modes: let ARP through instead of answering it
	// AllowSpoofing lets containers send under addresses that are not theirs.
	AllowSpoofing bool
	// NDByAgent: the datapath cannot rewrite neighbour discovery, the agent answers.
	NDByAgent  bool
	TunnelPort uint32 // OpenFlow port of the flow-based VXLAN port
	HostMAC    MAC    // of this host on the links of its uplinks (see HostMAC); VLAN routing
	Round      uint16 // goes into cookies
	// Host is how containers and the host reach each other; zero when they do not.
	Host HostAccess
	// EndpointPolicies makes room for endpoints that are held to PolicyRuleSets.
	EndpointPolicies bool
	// ConnectionRate bounds the tracked connections that an endpoint of this host may begin
	// per second; 0: it does not. Beyond it, their first packets are dropped.
	ConnectionRate uint32
	// DNS hands the agent what containers of this host ask name servers by UDP.
	DNS DNSSettings
}

// Pipeline computes the flows of one bridge.
type Pipeline struct {
	set      Settings
	mode     string
	features []feature
	policy   policy
	ids      [numTables]uint8
	names    []string
	entry    table // what a container sends goes on here
	sent     table // what a container has sent, and is no question about neighbours, goes on here
	forward  table // what has been let in goes on here
	filtered table // what policy lets through goes on here
	next     table // and from there, once answers of services have been translated back
	tunnels  map[tunnelKey]of.Instructions
}

// row is a flow without its place in a particular bridge.
type row struct {
	table    table
	priority uint16
	match    of.Match
	do       of.Instructions
}

// feature is one part of a pipeline. Each method returns the rows one object needs in
// the feature's tables; all must be pure.
type feature interface {
	id() uint8 // for cookies
	tables() []table
	fixed(*Pipeline) []row
	network(*Pipeline, Network) []row
	endpoint(*Pipeline, Endpoint) []row
	uplink(*Pipeline, Uplink) []row
}

// flooder is a feature that delivers to everybody in a network.
type flooder interface {
	feature
	flood(*Pipeline, Flood) ([]row, []of.Group)
}

// noRows is embedded by features that need no rows for some kinds of object.
type noRows struct{}

func (noRows) network(*Pipeline, Network) []row   { return nil }
func (noRows) endpoint(*Pipeline, Endpoint) []row { return nil }
func (noRows) uplink(*Pipeline, Uplink) []row     { return nil }

// Mode is the pipeline's name: vlan, vxlan, vrouter or vlrouter.
func (p *Pipeline) Mode() string { return p.mode }

// Tables lists the names of the tables by number.
func (p *Pipeline) Tables() []string { return p.names }

// Fixed returns the flows that stand whatever objects there are.
func (p *Pipeline) Fixed() Program {
	flows := p.collect("fixed", func(f feature) []row { return f.fixed(p) })
	for i := range p.names { // an explicit miss counts what is dropped
		flows = append(flows, of.Flow{Table: uint8(i), Priority: prioMiss, Cookie: cookie(p.set.Round, 0, "miss")})
	}
	return Program{Flows: dedupe(flows), Meters: rejecter{}.meters()}
}

// Network returns the flows of a network.
func (p *Pipeline) Network(n Network) Program {
	return Program{Flows: p.collect(n.ID, func(f feature) []row { return f.network(p, n) })}
}

// Endpoint returns the flows of an endpoint, and its meter.
func (p *Pipeline) Endpoint(e Endpoint) Program {
	return Program{
		Flows:  p.collect(e.ID, func(f feature) []row { return f.endpoint(p, e) }),
		Meters: slices.Concat(e.QoS.meters(e), p.set.DNS.meters(e), fair{}.meters(p.set, e)),
	}
}

// GroupVLAN returns the flows of a VLAN that is that of a group in a network, instead
// of the network's own; nothing where VLANs are not bridged.
func (p *Pipeline) GroupVLAN(n Network, tag uint16) Program {
	f := classifier{uplinks: p.set.Encap == VLAN && !p.set.Routing}
	return Program{Flows: p.place(f, fmt.Sprint("vlan ", tag), f.vlan(p, n, tag))}
}

// Uplink returns the flows of an uplink port.
func (p *Pipeline) Uplink(u Uplink) Program {
	return Program{Flows: p.collect(u.Name, func(f feature) []row { return f.uplink(p, u) })}
}

// Flood returns what floods a network; nothing where the mode does not flood itself.
func (p *Pipeline) Flood(f Flood) Program {
	var out Program
	for _, x := range p.features {
		if x, ok := x.(flooder); ok {
			rows, groups := x.flood(p, f)
			out.Flows = append(out.Flows, p.place(x, f.Network.ID, rows)...)
			out.Groups = append(out.Groups, groups...)
		}
	}
	return out
}

// VRF returns the flows that hold a VRF to the rules, once these are there.
func (p *Pipeline) VRF(v VRFPolicy) Program {
	var owner feature = p.policy
	rows := p.policy.vrf(p, v)
	if v.EndpointPoliciesOnly { // which goes when the guards do
		owner = guards{}
	} else {
		rows = append(rows, p.hostCheck(of.NewMatch().Reg(regVRF, uint32(v.VRF)))...)
	}
	return Program{Late: true, Flows: p.place(owner, fmt.Sprint("vrf ", v.VRF), rows)}
}

// Rule returns the flows of a rule.
func (p *Pipeline) Rule(r Rule) Program {
	return Program{Flows: p.place(p.policy, r.ID, p.policy.rule(p, r))}
}

func (p *Pipeline) collect(object string, rows func(feature) []row) []of.Flow {
	var flows []of.Flow
	for _, f := range p.features {
		flows = append(flows, p.place(f, object, rows(f))...)
	}
	return flows
}

// place gives rows of a feature their tables and their cookie.
func (p *Pipeline) place(f feature, object string, rows []row) []of.Flow {
	if len(rows) == 0 {
		return nil
	}
	flows := make([]of.Flow, len(rows))
	c := cookie(p.set.Round, f.id(), object)
	for i, r := range rows {
		flows[i] = of.Flow{Table: p.ids[r.table], Priority: r.priority, Cookie: c, Match: r.match, Instructions: r.do}
	}
	return flows
}

// dedupe keeps the first flow of each key: a feature's own miss goes before the default.
func dedupe(flows []of.Flow) []of.Flow {
	seen := make(map[of.FlowKey]bool, len(flows))
	out := flows[:0]
	for _, f := range flows {
		if !seen[f.Key()] {
			seen[f.Key()] = true
			out = append(out, f)
		}
	}
	return out
}

// to is the number of a table in this pipeline.
func (p *Pipeline) to(t table) uint8 { return p.ids[t] }

// host is the prefix of one address.
func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

type tunnelKey struct {
	vtep  netip.Addr
	vni   uint32
	group uint32
}
