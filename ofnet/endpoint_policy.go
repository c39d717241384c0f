package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
)

// endpointPolicies check connections of single endpoints of this host against rule sets,
// before the rules of their VRF are checked; either may deny. They use the connection
// tracking of the rules: an admitted connection is committed once, after both.
//
//	endpoint-policy  VRF without rules: has one of the two ends a policy? track the connection
//	policy-out       which set holds for the sender?
//	peer-out         which class is the receiver in?
//	allow-out        does it allow this?
//	policy-in        which set holds for the receiver?
//	peer-in          which class is the sender in?
//	allow-in         does it allow this?
//
// A set is a number in a register, so its flows do not depend on how many endpoints it
// holds for. A class is a number in the packet's metadata, so they do not depend on how many
// peers there are either. Where peers and ports would multiply, they are clauses of a
// conjunction.
type endpointPolicies struct{}

func (endpointPolicies) id() uint8 { return featureEndpointPolicy }

func (endpointPolicies) tables() []table {
	return []table{tableEndpointPolicy, tableEndpointPolicyOut, tablePeerOut, tableAllowOut, tableEndpointPolicyIn, tablePeerIn, tableAllowIn}
}

func (f endpointPolicies) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case EndpointPolicy:
		return part{rows: f.policy(p, o), late: true}
	case PolicyRuleSet:
		return part{rows: f.ruleSet(p, o)}
	case PolicyPeer:
		return part{rows: f.peer(p, o)}
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
		{tablePeerOut, prioMiss, of.NewMatch(), goTo(p.to(tableAllowOut))},
		{tableAllowOut, prioMiss, of.NewMatch(), deny(DeniedByPolicyOut)},
		{tableEndpointPolicyIn, prioMiss, of.NewMatch(), goTo(p.to(tableGroupSource))},
		{tablePeerIn, prioMiss, of.NewMatch(), inClass(goTo(p.to(tableAllowIn)), 0)}, // not that of the receiver
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
		rows = append(rows, row{tableEndpointPolicyOut, prioNormal, from, applyGoto(of.NewActions().SetField(regSet.is(g.Out)), p.to(tablePeerOut))})
		if p.set.DNS.Rate != 0 { // queries to the agent's name server are subject to the set too
			rows = append(rows, row{tableDNS, prioSpecific, from, goTo(p.to(tableService))})
		}
	}
	if g.In != 0 {
		rows = append(rows, row{tableEndpointPolicyIn, prioNormal, to, applyGoto(of.NewActions().SetField(regSet.is(g.In)), p.to(tablePeerIn))})
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

// The half of the packet's metadata that holds the class of the peer, between a peer table and
// the table after it. A log overwrites it there.
const (
	classShift = metadataIn
	classMask  = uint64(^uint32(0)) << classShift
)

// inClass notes the class of the peer.
func inClass(do of.Instructions, class uint32) of.Instructions {
	return do.WriteMetadata(uint64(class)<<classShift, classMask)
}

// inClassMatch narrows m to peers of a class.
func inClassMatch(m of.Match, class uint32) of.Match {
	return m.Metadata(uint64(class)<<classShift, classMask)
}

// peer returns the rows that tell the class of an address.
func (endpointPolicies) peer(p *Pipeline, o PolicyPeer) []row {
	vrf := of.NewMatch().With(regVRF.is(uint32(o.VRF)))
	return []row{
		{tablePeerOut, prioNormal, vrf.Dst(host(o.Addr)), inClass(goTo(p.to(tableAllowOut)), o.Class)},
		{tablePeerIn, prioNormal, vrf.Src(host(o.Addr)), inClass(goTo(p.to(tableAllowIn)), o.Class)},
	}
}

func (endpointPolicies) ruleSet(p *Pipeline, s PolicyRuleSet) []row {
	allow := p.allowIn
	b := allowRows{set: s, mine: of.NewMatch().With(regSet.is(s.Number)), table: tableAllowIn, next: goTo(p.to(tableGroupSource)), clauses: map[of.Match]of.Actions{}}
	if s.Out {
		b.table, b.next, allow = tableAllowOut, goTo(p.to(tableEndpointPolicyIn)), p.allowOut
	}
	for i, a := range s.Allows {
		b.do = allow(b.next, a.Name)
		b.add(uint32(i+1), a)
	}
	for _, m := range b.order {
		b.rows = append(b.rows, row{b.table, prioGeneral, m, apply(b.clauses[m])})
	}
	return distinct(b.rows)
}
