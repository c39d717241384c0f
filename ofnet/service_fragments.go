package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// Fragments have no ports in the switch, not even the first of a datagram, and those of
// IPv6 but the first no protocol either. Connection tracking reassembles a datagram, looks
// it up, and splits it again. All its fragments then have the state and the addresses of
// the connection; the first alone tells its ports.
//
// So fragments for an address of a service that has one UDP port there are tracked first;
// with several, the port of the others would be unknown.
//
//	service           a fragment for such an address? look it up
//	service-fragment  the first tells the port; the others can be for no other
//	...               as without fragments, by address in place of ports
//
// Tracking puts together only what it is given with the same registers, in the same zone,
// so all fragments of a datagram pass the same tables. Hence providers are chosen by address
// alone, as the hash over ports differs between fragments. No port is translated to one of a
// range: a flow for later fragments cannot know which one the datagram has (see service).
//
// Nothing but connection tracking may rewrite addresses: Open vSwitch 3.1 takes the bytes of
// a later fragment for a checksum and changes them. A container that is its own provider is
// reached by rewriting, so its fragments go to another provider, or are dropped.
//
// The kernel's datapath takes datagrams apart again only where they leave. There it is enough to
// track fragments once, in the zone of rules, and to begin the table again with the whole.

// Values of ip_frag: the bits of all fragments, and of all but the first.
const (
	fragAny   = 1
	fragLater = 2
)

// fragmented restricts a match to fragments.
func fragmented(m of.Match) of.Match { return m.With(of.FieldIPFrag.IsMasked(fragAny, fragAny)) }

// datagram restricts a match to fragments that may be of a UDP datagram.
func (ip ipFamily) datagram(m of.Match) of.Match {
	if m = fragmented(m.EthType(ip.ethType)); ip.ethType == of.EthTypeIPv4 {
		m = m.IPProto(of.ProtoUDP)
	}
	return m
}

// fragmentsFixed are the rows for fragments that all services share.
func fragmentsFixed(p *Pipeline) []row {
	if p.set.Kernel {
		return nil
	}
	var rows []row
	for _, ip := range ipFamilies() {
		m := fragmented(of.NewMatch().EthType(ip.ethType))
		rows = append(rows,
			row{tableServiceFragment, prioGeneral, m.With(of.FieldIPFrag.IsMasked(0, fragLater)), goTo(p.to(tableReject))},
			row{tableServiceLearn, prioSpecific, m, goTo(p.to(tableServiceOut))},
			row{tableServiceDirect, prioDrop + 1, m, commitAsIs(p, tableServiceOut)})
	}
	return rows
}

// fragmentsOf are the rows for fragments to the addresses of a service.
func fragmentsOf(p *Pipeline, s Service) []row {
	if p.set.Kernel {
		return wholeOf(p, s)
	}
	ports := map[netip.Addr]int{}
	for _, f := range s.Frontends {
		if f.Proto == of.ProtoUDP {
			ports[f.Addr.Addr()]++
		}
	}
	var rows []row
	for _, f := range s.Frontends {
		if f.Proto == of.ProtoUDP && ports[f.Addr.Addr()] == 1 {
			rows = append(rows, fragmentsOfFrontend(p, s, f)...)
		}
	}
	return rows
}

// wholeOf are the rows that have the kernel put together what goes to the addresses of a
// service, and what comes from its providers.
func wholeOf(p *Pipeline, s Service) []row {
	whole := func(t table, priority uint16, a netip.Addr, m of.Match) row {
		return row{t, priority, fragmented(m.With(regVRF.is(uint32(s.VRF))).EthType(familyOf(a).ethType)), lookUp(p, of.NewActions(), t)}
	}
	var rows []row
	for _, f := range s.Frontends {
		vip := f.Addr.Addr()
		rows = append(rows, whole(tableService, prioSpecific, vip, of.NewMatch().Dst(host(vip))))
		for _, v := range f.Providers {
			from := v.Addr.Addr()
			rows = append(rows, whole(tableServiceReply, prioNormal+1, from, of.NewMatch().Src(host(from))))
		}
	}
	return rows
}

func fragmentsOfFrontend(p *Pipeline, s Service, f Frontend) []row {
	vip := f.Addr.Addr()
	ip, vrf := familyOf(vip), of.NewMatch().With(regVRF.is(uint32(s.VRF)))
	look := of.NewActions().SetField(ip.vip.IsAddr(vip))
	known := vrf.EthType(ip.ethType).CTState(of.CTTracked, of.CTTracked|of.CTInvalid|of.CTReply).
		With(of.FieldCTProto.Is(of.ProtoUDP)).With(ip.ctDst.IsAddr(vip))
	first, later := known.With(of.FieldIPFrag.Is(fragAny)), known.With(of.FieldIPFrag.Is(fragAny|fragLater))
	found := applyGoto(of.NewActions().SetField(regService.is(f.Number)), p.to(p.afterService()))
	rows := []row{
		{tableService, prioSpecific, ip.datagram(vrf.Dst(host(vip))), translate(p, look, tableServiceFragment)},
		{tableServiceFragment, prioNormal, first.With(of.FieldCTTPDst.Is(uint64(f.Addr.Port()))), found},
		{tableServiceFragment, prioNormal, later, found},
	}
	mine := fragmented(of.NewMatch().With(regService.is(f.Number)).EthType(ip.ethType))
	for _, v := range f.Providers {
		to, from := host(v.Addr.Addr()), vrf.Src(host(v.Addr.Addr()))
		there := applyGoto(of.NewActions().Learn(mixedLearn(p, samePort(ip, f.Proto, v.Addr.Port()))), p.to(tableServiceOut))
		rows = append(rows,
			row{tableServiceState, prioSpecific, mine.CTState(trackedEst, trackedEst).Dst(to), there},
			row{tableServiceState, prioSpecific + 1, mine.CTState(trackedEst, trackedEst).Src(to).Dst(to), drop},
			row{tableServiceLearn, prioSpecific + 1, mine.Dst(to), there},
			row{tableServiceReply, prioSpecific, ip.datagram(from), translate(p, of.NewActions(), p.first(stageOutput))})
	}
	return append(rows, chooseForFragments(p, s, f, mine)...)
}

// chooseForFragments are the rows that choose one of the open providers, or reject.
func chooseForFragments(p *Pipeline, s Service, f Frontend, mine of.Match) []row {
	open := f.open()
	fresh := mine.CTState(trackedNew, trackedNew)
	switch {
	case len(open) == 0 && f.Drop:
		return []row{{tableServiceState, prioSpecific, fresh, drop}}
	case len(open) == 0:
		return []row{{tableServiceState, prioSpecific, fresh, goTo(p.to(tableReject))}}
	}
	draw := applyGoto(of.NewActions().Multipath(of.Multipath{
		Fields: of.HashSymmetricL3, Basis: drawBasis, Algorithm: of.MultipathModuloN, Links: uint32(len(open)), Dst: regProvider.all(),
	}), p.to(tableServiceSlot))
	var rows []row
	for i, v := range open { // not itself
		do := drop
		if next := open[(i+1)%len(open)]; next.Addr.Addr() != v.Addr.Addr() {
			do = toProvider(p, s, f, next.Provider)
		}
		rows = append(rows, row{tableServiceNAT, prioSpecific, mine.With(regProvider.is(v.number)).Src(host(v.Addr.Addr())), do})
	}
	if s.Affinity == 0 {
		return append(rows, row{tableServiceState, prioSpecific, fresh, draw})
	}
	return append(rows, row{tableServiceState, prioSpecific, fresh, chooseAgain(p)}, row{tableServiceSelect, prioNormal + 1, mine, draw})
}
