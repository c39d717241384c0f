package ofnet

import (
	"iter"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// endpointPolicies check connections of single endpoints of this host against rule sets,
// before the rules of their VRF are checked; either may deny. They use the connection
// tracking of the rules: an admitted connection is committed once, after both.
//
//	endpoint-policy  VRF without rules: has one of the two ends a policy? track the connection
//	policy-out       which set holds for the sender?
//	allow-out        does it allow this?
//	policy-in        which set holds for the receiver?
//	allow-in         does it allow this?
//
// A set is a number in a register, so its flows do not depend on how many endpoints it
// holds for. Where peers and ports would multiply, they are clauses of a conjunction.
type endpointPolicies struct{}

func (endpointPolicies) id() uint8 { return featureEndpointPolicy }

func (endpointPolicies) tables() []table {
	return []table{tableEndpointPolicy, tableEndpointPolicyOut, tableAllowOut, tableEndpointPolicyIn, tableAllowIn}
}

func (f endpointPolicies) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case EndpointPolicy:
		return part{rows: f.policy(p, o), late: true}
	case PolicyRuleSet:
		return part{rows: f.ruleSet(p, o)}
	case OwnNode:
		return part{rows: f.ownNode(p, o)}
	case VRFPolicy:
		if !o.EndpointPoliciesOnly {
			return part{}
		}
		rows := vrfRows(p, o)
		if o.LogOnly {
			rows = append(rows, f.others(p, o)...)
		}
		return part{rows: rows, late: true}
	}
	return part{}
}

// loggedMark, in regMark: the connection is tracked for the log alone. It is no generation of
// rules, which are odd.
const loggedMark = 2 << markShift

// others track connections of endpoints without policies for the log. Nothing is dropped for
// it: they are not subject to the rate, and pass whatever their state is, as they do where
// they are not tracked.
func (endpointPolicies) others(p *Pipeline, v VRFPolicy) []row {
	const established, invalid = of.CTTracked | of.CTEst, of.CTTracked | of.CTInvalid
	vrf := of.NewMatch().With(regVRF.is(uint32(v.VRF)))
	logged := of.NewActions().SetField(regMark.is(loggedMark))
	mine := vrf.With(regMark.is(loggedMark))
	rows := []row{
		{tableState, prioSpecific, mine.CTState(established, established|of.CTInvalid), p.gotoStage(stageReply)},
		{tableState, prioDrop + 1, mine.CTState(invalid, invalid), p.gotoStage(stageReply)},
	}
	look := lookUp(p, logged, tableState)
	for _, m := range []of.Match{vrf.IP(), vrf.IPv6()} {
		rows = append(rows, row{tableEndpointPolicy, prioMiss + 1, m, look})
	}
	if !p.set.Host.enabled() {
		return rows
	}
	deliver := goTo(p.to(tableHostDeliver))
	look = lookUp(p, logged, tableHostTrack)
	for _, m := range []of.Match{vrf.IP(), vrf.IPv6()} {
		rows = append(rows, row{tableHostCheck, prioMiss + 1, m, look})
	}
	return append(rows,
		row{tableHostTrack, prioSpecific + 1, mine.CTState(established, established|of.CTInvalid), deliver},
		row{tableHostTrack, prioDrop + 1, mine.CTState(invalid, invalid), deliver})
}

func (endpointPolicies) base(p *Pipeline) []row {
	deny := func(by Denial) of.Instructions { return p.mark(goTo(p.to(tableDeny)), by, 0) }
	return []row{
		{tableEndpointPolicy, prioMiss, of.NewMatch(), p.gotoStage(stageReply)},
		{tableEndpointPolicyOut, prioMiss, of.NewMatch(), goTo(p.to(tableEndpointPolicyIn))},
		{tableAllowOut, prioMiss, of.NewMatch(), deny(DeniedByPolicyOut)},
		{tableEndpointPolicyIn, prioMiss, of.NewMatch(), goTo(p.to(tableGroupSource))},
		{tableAllowIn, prioMiss, of.NewMatch(), deny(DeniedByPolicyIn)},
	}
}

// policy returns the rows that make an endpoint subject to its rule sets. The receiver is
// matched by its MAC address, which every mode has set by now, whatever its IP address is.
func (endpointPolicies) policy(p *Pipeline, g EndpointPolicy) []row {
	e := g.Endpoint
	if !e.Local() {
		return nil
	}
	from := of.NewMatch().InPort(e.Port)
	to := of.NewMatch().With(regVRF.is(uint32(e.VRF))).EthDst(e.MAC)
	track := trackConnection(p, of.NewActions())
	rows := []row{
		{tableEndpointPolicy, prioNormal, from.IP(), track},
		{tableEndpointPolicy, prioNormal, from.IPv6(), track},
		{tableEndpointPolicy, prioNormal, to.IP(), track},
		{tableEndpointPolicy, prioNormal, to.IPv6(), track},
	}
	rows = append(rows, p.hostCheck(of.NewMatch().With(regOutPort.is(e.Port)))...)
	if g.Out != 0 {
		rows = append(rows, row{tableEndpointPolicyOut, prioNormal, from, applyGoto(of.NewActions().SetField(regSet.is(g.Out)), p.to(tableAllowOut))})
		if p.set.DNS.Rate != 0 { // queries to the agent's name server are subject to the set too
			rows = append(rows, row{tableDNS, prioSpecific, from, goTo(p.to(tableService))})
		}
	}
	if g.In != 0 {
		rows = append(rows, row{tableEndpointPolicyIn, prioNormal, to, applyGoto(of.NewActions().SetField(regSet.is(g.In)), p.to(tableAllowIn))})
	}
	return rows
}

// ownNode returns the rows that allow traffic between endpoints with policies and their own
// host, matched by the host's endpoints and by its addresses.
func (endpointPolicies) ownNode(p *Pipeline, o OwnNode) []row {
	var rows []row
	for _, e := range o.Endpoints {
		if !e.Local() {
			continue
		}
		to := of.NewMatch().With(regVRF.is(uint32(e.VRF))).EthDst(e.MAC)
		rows = append(rows,
			row{tableEndpointPolicyOut, prioDrop, to, goTo(p.to(tableEndpointPolicyIn))},
			row{tableEndpointPolicyIn, prioDrop, of.NewMatch().InPort(e.Port), goTo(p.to(tableGroupSource))})
	}
	for _, a := range o.Addrs {
		rows = append(rows, row{tableEndpointPolicyOut, prioDrop, of.NewMatch().Dst(host(a)), goTo(p.to(tableEndpointPolicyIn))})
	}
	return distinct(rows)
}

func (endpointPolicies) ruleSet(p *Pipeline, s PolicyRuleSet) []row {
	b := allowRows{set: s, mine: of.NewMatch().With(regSet.is(s.Number)), table: tableAllowIn, next: goTo(p.to(tableGroupSource)), clauses: map[of.Match]of.Actions{}}
	at := uint(metadataIn)
	if s.Out {
		b.table, b.next, at = tableAllowOut, goTo(p.to(tableEndpointPolicyIn)), metadataOut
	}
	for i, a := range s.Allows {
		b.do = p.allow(b.next, a.Name, at)
		b.add(uint32(i+1), a)
	}
	for _, m := range b.order {
		b.rows = append(b.rows, row{b.table, prioGeneral, m, apply(b.clauses[m])})
	}
	return distinct(b.rows)
}

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
	if len(a.Peers) == 0 && len(a.Ports) == 0 {
		b.pass(prioNormal, b.mine)
		return
	}
	conjunction := false
	for _, six := range []bool{false, true} {
		peers := b.peers(a, six)
		switch n, m := len(peers), countPorts(a.Ports); {
		case m == 0:
			for _, peer := range peers {
				b.pass(prioNormal, peer)
			}
		case n*m <= n+m+1:
			for _, peer := range peers {
				for both := range b.ports(peer, a.Ports) {
					b.pass(prioNormal, both)
				}
			}
		default:
			conjunction = true
			for _, peer := range peers {
				b.clause(peer, number, 0)
			}
			for port := range b.ports(b.family(six), a.Ports) {
				b.clause(port, number, 1)
			}
		}
	}
	if conjunction {
		b.pass(prioGeneral, b.mine.ConjID(number))
	}
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

// peers matches the peers of a family.
func (b *allowRows) peers(a Allow, six bool) []of.Match {
	if len(a.Peers) == 0 {
		return []of.Match{b.family(six)}
	}
	var out []of.Match
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
