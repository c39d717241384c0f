package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// neighbor passes containers' ARP and neighbor discovery to the responders. With nd,
// nothing link-local passes: routed networks have no common link.
type neighbor struct{ arp, nd bool }

func (neighbor) id() uint8       { return featureNeighbor }
func (neighbor) tables() []table { return []table{tableNeighbor} }

func (f neighbor) part(p *Pipeline, o Object) part {
	switch o.(type) {
	case Base:
		return part{rows: f.base(p)}
	}
	return part{}
}

func (f neighbor) base(p *Pipeline) []row {
	var rows []row
	add := func(priority uint16, m of.Match, do of.Instructions) {
		rows = append(rows, row{tableNeighbor, priority, m, do})
	}
	if f.arp {
		add(prioNormal, of.NewMatch().ARP(arpRequest), goTo(p.to(tableARP)))
	}
	if !f.nd {
		add(prioMiss, of.NewMatch(), p.gotoStage(stageService))
		return rows
	}
	add(prioNormal, of.NewMatch().ICMPv6(icmpv6NeighborSolicit), goTo(p.to(tableND)))
	for _, typ := range []uint8{icmpv6RouterSolicit, icmpv6RouterAdvert, icmpv6NeighborAdvert, icmpv6Redirect} {
		add(prioNormal, of.NewMatch().ICMPv6(typ), drop)
	}
	add(prioMiss+1, of.NewMatch().IP(), p.gotoStage(stageService))
	add(prioMiss+1, of.NewMatch().IPv6(), p.gotoStage(stageService))
	return rows
}

// arpResponder answers ARP requests (RFC 826) for existing addresses without the agent:
// asRouter with the router's MAC, otherwise with the endpoint's own.
type arpResponder struct{ asRouter bool }

func (arpResponder) id() uint8       { return featureARP }
func (arpResponder) tables() []table { return []table{tableARP, tableARPReply} }

func (f arpResponder) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	}
	return part{}
}

func (f arpResponder) base(p *Pipeline) []row {
	rows := []row{
		// A sender of 0.0.0.0 probes whether its own address is free (RFC 5227): a
		// reply would tell it that it is not.
		{tableARP, prioDrop, of.NewMatch().ARP(arpRequest).ARPSPA(host(netip.IPv4Unspecified())), f.unanswered(p)},
		arpReplyRow(),
	}
	if f.asRouter || p.set.DNS.Rate != 0 { // addresses of the name server
		rows = append(rows, row{tableARP, prioNormal, of.NewMatch().ARP(arpRequest).ARPTPA(host(LinkRouter4)), answer(p, RouterMAC)})
	}
	if f.asRouter {
		return rows
	}
	return append(rows, row{tableARP, prioMiss, of.NewMatch(), f.unanswered(p)})
}

// arpReplyRow is the part that is common to all replies.
func arpReplyRow() row {
	return row{tableARPReply, prioNormal, of.NewMatch().ARP(arpRequest), apply(of.NewActions().
		SetField(of.FieldARPOp.Is(arpReply)).
		MoveField(of.FieldARPSHA, of.FieldARPTHA).
		MoveField(of.FieldEthSrc, of.FieldARPSHA).
		MoveField(of.FieldARPTPA, regScratch.field()).
		MoveField(of.FieldARPSPA, of.FieldARPTPA).
		MoveField(regScratch.field(), of.FieldARPSPA).
		OutputInPort())}
}

// unanswered is what happens to a request for an unknown address: in a bridge it continues
// to the physical network, which may know.
func (f arpResponder) unanswered(p *Pipeline) of.Instructions {
	if f.asRouter {
		return drop
	}
	return p.gotoStage(stageForward)
}

// answer turns the frame around; the reply table does what is common to all replies.
func answer(p *Pipeline, mac MAC) of.Instructions {
	return applyGoto(of.NewActions().MoveField(of.FieldEthSrc, of.FieldEthDst).SetEthSrc(mac), p.to(tableARPReply))
}

func (f arpResponder) network(p *Pipeline, n Network) []row {
	if !f.asRouter || !n.Gateway4.IsValid() {
		return nil
	}
	return []row{{tableARP, prioNormal, arpFor(n.VRF, n.Gateway4), answer(p, RouterMAC)}}
}

func (f arpResponder) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.IPv4.IsValid() {
		return nil
	}
	m, mac := arpFor(e.VRF, e.IPv4), RouterMAC
	if !f.asRouter {
		m, mac = of.NewMatch().ARP(arpRequest).With(regSegment.is(e.Segment())).ARPTPA(host(e.IPv4)), e.MAC
	}
	rows := []row{{tableARP, prioNormal, m, answer(p, mac)}}
	if e.Local() { // an announcement of its own address is not a request
		own := of.NewMatch().InPort(e.Port).ARP(arpRequest).ARPTPA(host(e.IPv4))
		rows = append(rows, row{tableARP, prioSpecific, own, f.unanswered(p)})
	}
	return rows
}

func arpFor(vrf uint16, a netip.Addr) of.Match {
	return of.NewMatch().ARP(arpRequest).With(regVRF.is(uint32(vrf))).ARPTPA(host(a))
}

// ndResponder answers neighbor solicitations (RFC 4861 section 7.2) with the router's MAC.
// It needs three tables: nd_tll exists only once the type has been rewritten.
type ndResponder struct{}

func (ndResponder) id() uint8       { return featureND }
func (ndResponder) tables() []table { return []table{tableND, tableNDReply, tableNDFinish} }

func (f ndResponder) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	}
	return part{}
}

func (ndResponder) base(p *Pipeline) []row {
	solicit := of.NewMatch().ICMPv6(icmpv6NeighborSolicit)
	rows := []row{
		// Duplicate address detection (RFC 4862 section 5.4) must stay unanswered.
		{tableND, prioDrop, solicit.IPv6Src(host(netip.IPv6Unspecified())), drop},
		{tableND, prioNormal, solicit.NDTarget(LinkRouter6), advertise(p, ndRouter|ndSolicited|ndOverride)},
	}
	return append(rows, ndReplyRows(p)...)
}

// ndReplyRows are the part that is common to all advertisements.
func ndReplyRows(p *Pipeline) []row {
	solicit := of.NewMatch().ICMPv6(icmpv6NeighborSolicit)
	if p.set.Kernel {
		return []row{{tableNDReply, prioNormal, solicit, handOver(rejectMeter)}}
	}
	return []row{
		{tableNDReply, prioNormal, solicit, applyGoto(of.NewActions().
			MoveField(of.FieldEthSrc, of.FieldEthDst).SetEthSrc(RouterMAC).
			MoveField(of.FieldIPv6Src, of.FieldIPv6Dst).
			MoveField(of.FieldNDTarget, of.FieldIPv6Src).
			SetField(of.FieldNDOptionsType.Is(ndOptTargetLinkAddr)).
			MoveField(regScratch.field(), of.FieldNDReserved).
			SetField(of.FieldICMPv6Type.Is(icmpv6NeighborAdvert)), p.to(tableNDFinish))},
		{tableNDFinish, prioNormal, of.NewMatch().ICMPv6(icmpv6NeighborAdvert), apply(of.NewActions().
			SetField(of.FieldNDTLL.IsMAC(RouterMAC)).OutputInPort())},
	}
}

func (ndResponder) network(p *Pipeline, n Network) []row {
	if !n.Gateway6.IsValid() {
		return nil
	}
	return []row{{tableND, prioNormal, ndFor(n.VRF, n.Gateway6), advertise(p, ndRouter|ndSolicited|ndOverride)}}
}

func (ndResponder) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.IPv6.IsValid() {
		return nil
	}
	rows := []row{{tableND, prioNormal, ndFor(e.VRF, e.IPv6), advertise(p, ndSolicited|ndOverride)}}
	if e.Local() {
		own := of.NewMatch().InPort(e.Port).ICMPv6(icmpv6NeighborSolicit).NDTarget(e.IPv6)
		rows = append(rows, row{tableND, prioSpecific, own, drop})
	}
	return rows
}

func ndFor(vrf uint16, a netip.Addr) of.Match {
	return of.NewMatch().With(regVRF.is(uint32(vrf))).ICMPv6(icmpv6NeighborSolicit).NDTarget(a)
}

func advertise(p *Pipeline, flags uint32) of.Instructions {
	return applyGoto(of.NewActions().SetField(regScratch.is(flags)), p.to(tableNDReply))
}
