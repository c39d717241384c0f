package ofnet

import (
	"iter"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// allowRows collects the rows of a rule set.
type allowRows struct {
	set   PolicyRuleSet
	mine  of.Match
	table table
	next  of.Instructions
	do    of.Instructions // next, for the Allow in hand
	rows  []row
	// The conjunctions of which a match is a clause. Their ids belong to the set, since
	// each of their rows matches the set.
	clauses map[of.Match]of.Actions
	order   []of.Match
}

func (b *allowRows) add(number uint32, a Allow) {
	if len(a.Ports) == 0 {
		for _, peer := range b.anyPort(a) {
			b.pass(prioNormal, peer)
		}
		return
	}
	conjunction := false
	for _, six := range []bool{false, true} {
		if b.multiplies(a, six) {
			for _, peer := range b.peers(a, six) {
				for both := range b.ports(peer, a.Ports) {
					b.pass(prioNormal, both)
				}
			}
			continue
		}
		for _, peer := range b.prefixes(a, six) {
			b.clause(peer, number, 0)
		}
		if !conjunction { // of both families
			for _, class := range a.Classes {
				b.clause(inClassMatch(b.mine, class), number, 0)
			}
		}
		conjunction = true
		for port := range b.ports(b.family(six), a.Ports) {
			b.clause(port, number, 1)
		}
	}
	if conjunction {
		b.pass(prioGeneral, b.mine.ConjID(number))
	}
}

// multiplies reports whether each of the peers with each of the ports are fewer rows than a
// conjunction. Classes are clauses of both families at once.
func (b *allowRows) multiplies(a Allow, six bool) bool {
	m := countPorts(a.Ports)
	if len(a.Classes) == 0 {
		n := len(b.peers(a, six))
		return n*m <= n+m+1
	}
	n, classes := len(a.Peers), len(a.Classes)
	return (n+2*classes)*m <= n+classes+2*m+1
}

func (b *allowRows) pass(priority uint16, m of.Match) {
	b.rows = append(b.rows, row{b.table, priority, m, b.do})
}

func (b *allowRows) clause(m of.Match, number uint32, clause uint8) {
	if _, ok := b.clauses[m]; !ok {
		b.order = append(b.order, m)
	}
	b.clauses[m] = b.clauses[m].Conjunction(number, clause, 2)
}

func (b *allowRows) family(six bool) of.Match {
	if six {
		return b.mine.IPv6()
	}
	return b.mine.IP()
}

// anyPort matches the peers.
func (b *allowRows) anyPort(a Allow) (out []of.Match) {
	if a.Everybody() {
		return []of.Match{b.mine}
	}
	for _, class := range a.Classes {
		out = append(out, inClassMatch(b.mine, class))
	}
	return append(append(out, b.prefixes(a, false)...), b.prefixes(a, true)...)
}

// peers matches the peers of a family.
func (b *allowRows) peers(a Allow, six bool) []of.Match {
	if a.Everybody() {
		return []of.Match{b.family(six)}
	}
	var out []of.Match
	for _, class := range a.Classes {
		out = append(out, inClassMatch(b.family(six), class))
	}
	return append(out, b.prefixes(a, six)...)
}

// prefixes matches the peers of a family that are prefixes.
func (b *allowRows) prefixes(a Allow, six bool) (out []of.Match) {
	for _, p := range a.Peers {
		if p.Addr().Is6() == six {
			out = append(out, b.peer(p))
		}
	}
	return out
}

// peer matches the other end. Unlike a field match, it also works for /0.
func (b *allowRows) peer(p netip.Prefix) of.Match {
	switch {
	case p.Bits() == 0:
		return b.family(p.Addr().Is6())
	case b.set.Out:
		return b.mine.Dst(p)
	}
	return b.mine.Src(p)
}

// ports yields m narrowed to each of the ranges.
func (b *allowRows) ports(m of.Match, ranges []PortRange) iter.Seq[of.Match] {
	return func(yield func(of.Match) bool) {
		for _, r := range ranges {
			_, dst := portFields(r.Proto)
			for _, port := range r.masked() {
				if !yield(port.narrow(m.IPProto(r.Proto), dst)) {
					return
				}
			}
		}
	}
}

func countPorts(ranges []PortRange) (n int) {
	for _, r := range ranges {
		n += len(r.masked())
	}
	return n
}
