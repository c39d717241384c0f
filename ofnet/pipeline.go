package ofnet

import (
	"net/netip"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
)

// Pipeline computes the flows of one bridge: it asks each of its features for what an
// object needs. It is not safe for concurrent use.
type Pipeline struct {
	set      Settings
	mode     Mode
	features []feature // configured for the mode
	layout   layout
	tunnels  map[tunnelKey]of.Instructions
}

// feature is one part of a pipeline.
type feature interface {
	id() uint8 // for cookies
	tables() []table
	// part is what an object needs in the feature's tables, empty if nothing. It depends
	// on the settings and the object only.
	part(*Pipeline, Object) part
}

// part is what one feature adds to a Program.
type part struct {
	rows   []row
	groups []of.Group
	meters []of.Meter
	late   bool // see Program
}

// row is a flow, independent of the tables' numbers in a bridge.
type row struct {
	table    table
	priority uint16
	match    of.Match
	do       of.Instructions
}

// Mode is how the pipeline forwards.
func (p *Pipeline) Mode() Mode { return p.mode }

// Tables lists the names of the tables by number.
func (p *Pipeline) Tables() []string { return p.layout.names }

// Program is what an object needs in the bridge; empty if the mode has no use for it.
func (p *Pipeline) Program(o Object) Program {
	var out Program
	for _, f := range p.features {
		add := f.part(p, o)
		out.Flows = append(out.Flows, p.place(f, o, add.rows)...)
		out.Groups = append(out.Groups, add.groups...)
		out.Meters = append(out.Meters, add.meters...)
		out.Late = out.Late || add.late
	}
	if _, base := o.(Base); base {
		out.Flows = dedupe(append(out.Flows, p.misses()...))
	}
	return out
}

// misses are the lowest flows of the tables, which count what is dropped there.
func (p *Pipeline) misses() []of.Flow {
	flows := make([]of.Flow, 0, len(p.layout.names))
	for i := range p.layout.names {
		flows = append(flows, of.Flow{Table: uint8(i), Priority: prioMiss, Cookie: cookie(p.set.Round, 0, "miss")})
	}
	return flows
}

// place assigns table numbers and cookies to a feature's rows.
func (p *Pipeline) place(f feature, o Object, rows []row) []of.Flow {
	if len(rows) == 0 {
		return nil
	}
	flows := make([]of.Flow, len(rows))
	c := cookie(p.set.Round, f.id(), o.label())
	for i, r := range rows {
		flows[i] = of.Flow{Table: p.to(r.table), Priority: r.priority, Cookie: c, Match: p.exactND(r.match), Instructions: r.do}
	}
	return flows
}

// dedupe keeps the first flow of each key: a feature's own miss replaces the default.
func dedupe(flows []of.Flow) []of.Flow {
	seen := make(map[of.FlowKey]bool, len(flows))
	return slices.DeleteFunc(flows, func(f of.Flow) bool {
		dup := seen[f.Key()]
		seen[f.Key()] = true
		return dup
	})
}

// distinct keeps the first row of each table, priority and match.
func distinct(rows []row) []row {
	type key struct {
		table    table
		priority uint16
		match    of.Match
	}
	seen := make(map[key]bool, len(rows))
	return slices.DeleteFunc(rows, func(r row) bool {
		k := key{r.table, r.priority, r.match}
		dup := seen[k]
		seen[k] = true
		return dup
	})
}

// to is the number of a table in this pipeline.
func (p *Pipeline) to(t table) uint8 { return p.layout.ids[t] }

// first is the first table of a stage, or of the next stage that has any in this mode.
func (p *Pipeline) first(s stage) table { return p.layout.first[s] }

// gotoStage continues with the first table of a stage.
func (p *Pipeline) gotoStage(s stage) of.Instructions { return goTo(p.to(p.first(s))) }

// next is the number of the table that follows a table in this mode.
func (p *Pipeline) next(t table) uint8 { return p.to(t) + 1 }

// host is the prefix of one address.
func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

type tunnelKey struct {
	vtep  netip.Addr
	vni   uint32
	group uint32
}
