package ofnet

import (
	"fmt"
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// Rule allows or denies connections. A zero field matches anything.
type Rule struct {
	ID                 string
	Priority           uint8  // 1–100, higher wins; at the same priority denials do, and silent ones before rejections
	SrcGroup, DstGroup uint32 // numbers of groups
	Src, Dst           netip.Prefix
	Proto              uint8 // IP protocol; ICMP means that of each family
	SrcPort, DstPort   uint16
	// Flags restricts a rule for TCP by SYN and ACK: "syn", "syn,ack", "ack",
	// "syn,!ack", "!syn,ack" or "". Restrictions that match the first segment match
	// every packet that rules evaluate, so they have no effect.
	Flags string
	Deny  bool
	// Reject tells the sender of a denial.
	Reject bool
}

// VRFPolicy says that a VRF has rules.
type VRFPolicy struct {
	VRF uint16
	// Generation identifies the current rules: 31 bits, different for different rules. A
	// connection admitted under another generation is evaluated again.
	Generation uint32
	// EndpointPoliciesOnly says that there are no rules: only connections of endpoints
	// with policies are tracked.
	EndpointPoliciesOnly bool
	// LogOnly says that there are no rules: connections are tracked because they are logged,
	// and everything passes; with EndpointPoliciesOnly, those of endpoints without policies.
	LogOnly bool
}

// RuleSet is a sum of rules.
type RuleSet struct {
	n   int
	sum uint64
}

// Add adds a rule.
func (s *RuleSet) Add(r Rule) { s.n, s.sum = s.n+1, s.sum+r.fingerprint() }

// Remove removes a rule that was added.
func (s *RuleSet) Remove(r Rule) { s.n, s.sum = s.n-1, s.sum-r.fingerprint() }

// Empty reports whether there is no rule.
func (s *RuleSet) Empty() bool { return s.n == 0 }

// Generation is a hash of the rules, independent of the order in which they were added.
func (s *RuleSet) Generation() uint32 { return generation(s.sum) }

func generation(sum uint64) uint32 { return uint32(sum>>33) | 1 }

func (r Rule) fingerprint() uint64 {
	r.ID = "" // has no influence on decisions
	return Fingerprint(fmt.Sprintf("%+v", r))
}

// policy applies the rules of a VRF to its connections, with the switch's connection
// tracking. In a VRF without rules nothing is tracked.
//
//	track         VRF with rules? track the connection
//	state         admitted under these rules: go on; malformed: drop
//	group-source  the sender's group, by its address, if it is on another host
//	group-dest    the receiver's group, by its address (where no route has told it)
//	policy        the rules, and without a match: allow
//	deny          what is denied ends here, and is remembered if it was a connection;
//	              what is rejected goes on to the agent
//
// The connection's mark is generation << 1 | denied.
type policy struct {
	byAddress bool // no route has set the receiver's group
}

const (
	markShift  = 1
	markDenied = 1
)

func (policy) id() uint8 { return featurePolicy }

func (f policy) tables() []table {
	t := []table{tableTrack, tableState, tableGroupSource, tablePolicy, tableDeny}
	if f.byAddress {
		t = append(t, tableGroupDest)
	}
	return t
}

// judge is the table for new connections.
func (policy) judge(p *Pipeline) table {
	if p.set.EndpointPolicies {
		return tableEndpointPolicyOut
	}
	return tableGroupSource
}

// afterSource is the table in which the groups of sender and receiver are known.
func (f policy) afterSource() table {
	if f.byAddress {
		return tableGroupDest
	}
	return tablePolicy
}

func (f policy) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	case Rule:
		return part{rows: f.rule(p, o)}
	case VRFPolicy:
		if o.EndpointPoliciesOnly { // ends when the endpoint policies do
			return part{}
		}
		rows := append(vrfRows(p, o), p.hostCheck(of.NewMatch().With(regVRF.is(uint32(o.VRF))))...)
		if o.LogOnly {
			rows = append(rows, p.letInvalid(o)...)
		}
		return part{late: true, rows: rows}
	}
	return part{}
}

func (f policy) base(p *Pipeline) []row {
	next := p.gotoStage(stageReply)
	denied := of.FieldCTMark.IsMasked(markDenied, markDenied)
	admitted := of.FieldCTMark.IsMasked(0, markDenied)
	state := func(bits uint32) of.Match { return of.NewMatch().CTState(bits, bits) }
	const tracked = of.CTTracked
	rows := []row{
		{tableTrack, prioMiss, of.NewMatch(), next},
		{tableState, prioDrop, state(tracked | of.CTInvalid), drop},
		// Replies do not decide: the next packet of the other direction will.
		{tableState, prioNormal, state(tracked | of.CTEst | of.CTReply).With(admitted), next},
		{tableState, prioNormal, state(tracked | of.CTEst | of.CTReply).With(denied), drop},
		{tableState, prioNormal, state(tracked | of.CTRel).With(admitted), next},
		{tableState, prioNormal, state(tracked | of.CTRel).With(denied), drop},
		{tableState, prioMiss, of.NewMatch(), goTo(p.to(f.judge(p)))},
		{tableGroupSource, prioSpecific, of.NewMatch().With(regOrigin.is(originLocal)), goTo(p.to(f.afterSource()))},
		{tableGroupSource, prioMiss, of.NewMatch(), goTo(p.to(f.afterSource()))},
	}
	remember := of.NewActions().CT(of.CT{Commit: true, ZoneFrom: zone(), Exec: of.NewActions().SetField(denied)})
	for _, family := range families { // ct requires that the match is of IP
		rows = append(rows,
			row{tablePolicy, prioMiss + 1, family, f.admit(p, "")},
			row{tableDeny, prioNormal, family.CTState(tracked|of.CTEst, tracked|of.CTEst), p.handOn(apply(remember))},
			row{tableDeny, prioSpecific, family.CTState(tracked|of.CTEst, tracked|of.CTEst).With(regScratch.is(rejectedByRule)), applyGoto(remember, p.to(tableReject))},
			row{tableDeny, prioGeneral, family.With(regScratch.is(rejectedByRule)), goTo(p.to(tableReject))})
	}
	if p.set.logs() {
		rows = append(rows, row{tableDeny, prioMiss, of.NewMatch(), p.handOn(drop)})
	}
	// Links depend on neighbor discovery and multicast listening, which have no
	// connections (RFC 4861, RFC 2710, RFC 3810).
	for _, typ := range []uint8{icmpv6RouterSolicit, icmpv6RouterAdvert, icmpv6NeighborSolicit, icmpv6NeighborAdvert, icmpv6Redirect} {
		rows = append(rows, row{tableTrack, prioSpecific, of.NewMatch().ICMPv6(typ), next})
	}
	// Listeners talk to groups and to all routers. Unicast messages could be used to get
	// around the rules.
	for _, typ := range []uint8{icmpv6ListenerQuery, icmpv6ListenerReport1, icmpv6ListenerDone, icmpv6ListenerReport} {
		rows = append(rows, row{tableTrack, prioSpecific, of.NewMatch().ICMPv6(typ).IPv6Dst(multicast6), next})
	}
	if f.byAddress {
		rows = append(rows, row{tableGroupDest, prioMiss, of.NewMatch(), goTo(p.to(tablePolicy))})
	}
	return rows
}

var multicast6 = netip.MustParsePrefix("ff00::/8")

var families = [...]of.Match{of.NewMatch().IP(), of.NewMatch().IPv6()}

// zone is the VRF's conntrack zone.
func zone() of.Subfield { return regVRF.bits(0, 15) }

// admit commits the connection as allowed by the current rules: by one of them, or
// because none matches.
func (policy) admit(p *Pipeline, rule string) of.Instructions {
	return applyGoto(of.NewActions().CT(of.CT{
		Commit: true, ZoneFrom: zone(), Exec: p.label(of.NewActions().MoveField(regMark.field(), of.FieldCTMark), rule),
	}), p.to(p.first(stageReply)))
}

func (f policy) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Policed || e.Group == 0 {
		return nil
	}
	var rows []row
	vrf := of.NewMatch().With(regVRF.is(uint32(e.VRF)))
	fromRemote := applyGoto(of.NewActions().SetField(regSrcGrp.is(e.Group)), p.to(f.afterSource()))
	to := applyGoto(of.NewActions().SetField(regDstGrp.is(e.Group)), p.to(tablePolicy))
	if f.byAddress {
		// Bridges deliver by MAC, whatever the IP address: it may be link-local, a
		// multicast group, or another endpoint's.
		inNetwork := vrf.With(regSegment.is(e.Segment()))
		rows = append(rows, row{tableGroupDest, prioSpecific, inNetwork.EthDst(e.MAC), to})
		if !e.Local() {
			rows = append(rows, row{tableGroupSource, prioNormal - 1, inNetwork.EthSrc(e.MAC), fromRemote})
		}
	}
	for _, a := range []netip.Addr{e.IPv4, e.IPv6} {
		if !a.IsValid() {
			continue
		}
		if !e.Local() {
			rows = append(rows, row{tableGroupSource, prioNormal, vrf.Src(host(a)), fromRemote})
		}
		if f.byAddress {
			rows = append(rows, row{tableGroupDest, prioNormal, vrf.Dst(host(a)), to})
		}
	}
	return rows
}

// vrfRows make connections of a VRF subject to the rules, once these are installed.
func vrfRows(p *Pipeline, v VRFPolicy) []row {
	mark := v.Generation << markShift
	m := of.NewMatch().With(regVRF.is(uint32(v.VRF)))
	known := of.NewActions().SetField(regMark.is(mark))
	track := trackConnection(p, known)
	switch {
	case v.EndpointPoliciesOnly:
		track = applyGoto(known, p.to(tableEndpointPolicy))
	case v.LogOnly: // no rate: nothing is dropped for the log
		track = lookUp(p, known, tableState)
	}
	const established = of.CTTracked | of.CTEst
	return []row{
		{tableTrack, prioNormal, m.IP(), track},
		{tableTrack, prioNormal, m.IPv6(), track},
		{
			tableState, prioSpecific, m.CTState(established, established|of.CTInvalid).With(of.FieldCTMark.Is(uint64(mark))),
			p.gotoStage(stageReply),
		},
	}
}

// letInvalid lets what connection tracking cannot assign pass where it only logs.
func (p *Pipeline) letInvalid(v VRFPolicy) []row {
	const invalid = of.CTTracked | of.CTInvalid
	m := of.NewMatch().With(regVRF.is(uint32(v.VRF))).CTState(invalid, invalid)
	rows := []row{{tableState, prioDrop + 1, m, p.gotoStage(stageReply)}}
	if p.set.Host.enabled() {
		rows = append(rows, row{tableHostTrack, prioDrop + 1, m, goTo(p.to(tableHostDeliver))})
	}
	return rows
}

// trackConnection looks the connection up.
func trackConnection(p *Pipeline, a of.Actions) of.Instructions {
	return lookUp(p, a, p.afterTrack())
}

func lookUp(p *Pipeline, a of.Actions, next table) of.Instructions {
	return apply(a.CT(of.CT{ZoneFrom: zone(), Recirc: true, Table: p.to(next)}))
}

// rule returns a row for each family that the rule applies to. Groups are numbers in
// registers by now, so a rule between groups of any size is one row.
func (f policy) rule(p *Pipeline, r Rule) []row {
	priority, do := prioRule+3*uint16(r.Priority), f.admit(p, r.ID)
	switch {
	case r.Deny && r.Reject:
		priority, do = priority+1, p.mark(applyGoto(of.NewActions().SetField(regScratch.is(rejectedByRule)), p.to(tableDeny)), DeniedByRule, NumberOf(r.ID))
	case r.Deny:
		priority, do = priority+2, p.mark(goTo(p.to(tableDeny)), DeniedByRule, NumberOf(r.ID))
	}
	var rows []row
	for i, family := range families {
		if m, ok := r.match(family, i == 1); ok {
			rows = append(rows, row{tablePolicy, priority, m, do})
		}
	}
	return rows
}

func (r Rule) match(m of.Match, six bool) (of.Match, bool) {
	for _, a := range []netip.Prefix{r.Src, r.Dst} {
		if a.IsValid() && a.Addr().Is6() != six {
			return m, false
		}
	}
	if r.Src.IsValid() {
		m = m.Src(r.Src)
	}
	if r.Dst.IsValid() {
		m = m.Dst(r.Dst)
	}
	if r.SrcGroup != 0 {
		m = m.With(regSrcGrp.is(r.SrcGroup))
	}
	if r.DstGroup != 0 {
		m = m.With(regDstGrp.is(r.DstGroup))
	}
	proto := r.Proto
	if six && proto == of.ProtoICMP {
		proto = of.ProtoICMPv6
	}
	if proto != 0 {
		m = m.IPProto(proto)
	}
	src, dst := of.FieldTCPSrc, of.FieldTCPDst
	switch proto {
	case of.ProtoTCP:
		if f, ok := tcpFlags[r.Flags]; ok {
			m = m.With(of.FieldTCPFlags.IsMasked(f.value, f.mask))
		}
	case of.ProtoUDP:
		src, dst = of.FieldUDPSrc, of.FieldUDPDst
	default:
		return m, true
	}
	if r.SrcPort != 0 {
		m = m.With(src.Is(uint64(r.SrcPort)))
	}
	if r.DstPort != 0 {
		m = m.With(dst.Is(uint64(r.DstPort)))
	}
	return m, true
}

// tcpFlags are restrictions that the first packet of a connection may not match (RFC 9293
// section 3.1: SYN 2, ACK 16).
var tcpFlags = map[string]struct{ value, mask uint64 }{
	"syn,ack":  {0x12, 0x12},
	"ack":      {0x10, 0x10},
	"!syn,ack": {0x10, 0x12},
}

// KnownFlags reports whether s is a valid value of Rule.Flags.
func KnownFlags(s string) bool {
	_, ok := tcpFlags[s]
	return ok || s == "" || s == "syn" || s == "syn,!ack"
}
