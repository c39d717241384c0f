package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// HostAccess is a host's private subnet: the host knows its containers there by addresses
// that no tenant can have.
type HostAccess struct {
	MAC              MAC        // of the host's port
	Addr4, Addr6     netip.Addr // of the host
	Subnet4, Subnet6 netip.Prefix
	// Pass4 and Pass6 replace the address of a client for whom the host forwards, where
	// the containers have no route back to that address.
	Pass4, Pass6 netip.Addr
	// NodeSNAT4 and NodeSNAT6 are this host's node SNAT addresses, with which it reaches
	// containers of other hosts. No container may have them. Zero: it does not reach
	// them.
	NodeSNAT4, NodeSNAT6 netip.Addr
	Tunnel6              bool // tunnels use IPv6
}

func (h HostAccess) enabled() bool { return h.Addr4.IsValid() || h.Addr6.IsValid() }

func (h HostAccess) addrs() []netip.Addr { return []netip.Addr{h.Addr4, h.Addr6} }

// answers are the addresses to which containers reply to the host.
func (h HostAccess) answers() []netip.Addr { return append(h.addrs(), h.Pass4, h.Pass6) }

// hostAccess forwards between containers and the host's port.
//
//	host-in       the host's packets, by the container's own or private address
//	host-check    are the container's connections tracked? does this one exist?
//	host-track    what the host begins is let in, and so its answers
//	host-deliver  to the container; in routed VXLANs after what service-reply makes of it
//	host-out      to the host, under the container's private address (world only)
//	host-new      what begins a connection is remembered: translated, or as it is
//	host-emit     out of the host's port, or back to another host that has asked
//
// The host's own connections are not subject to policy, as those of nobody are who
// could read the containers' memory. They come from the host's address alone, by which
// they are told from what the host only forwards: that is subject to policy like
// everything else, and so is what containers begin. The host's rules see to it that
// nobody else has that address (package hostnet).
//
// With world, the host is also the default gateway to the outside: what no route of the
// VRF covers goes to it. Then addresses are translated, by a connection tracking zone of
// each VRF: tenants may have equal addresses. A connection that the host has made to a
// container's own address is not.
type hostAccess struct{ world bool }

// hostZoneBit, added to the number of a VRF, is the zone of its translations.
const hostZoneBit = 1 << 14

func hostZone(vrf uint16) uint16 { return hostZoneBit | vrf }

func (hostAccess) id() uint8 { return featureHost }

func (f hostAccess) tables() []table {
	t := []table{tableHostIn, tableHostCheck, tableHostTrack, tableHostDeliver, tableHostEmit}
	if f.world {
		t = append(t, tableHostOut, tableHostNew)
	}
	return t
}

func (f hostAccess) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	case HostPort:
		return part{rows: f.port(p, o)}
	}
	return part{}
}

func (f hostAccess) base(p *Pipeline) []row {
	const established = of.CTTracked | of.CTEst
	state := func(bits uint32) of.Match { return of.NewMatch().CTState(bits, bits) }
	deliver := goTo(p.to(tableHostDeliver))
	toContainer := apply(of.NewActions().OutputReg(regOutPort.all()))
	if f.world {
		// It may be the reply of a backend on a host, or outside.
		toContainer = goTo(p.to(tableServiceReply))
	}
	rows := []row{
		{tableHostCheck, prioSpecific, of.NewMatch().With(regOrigin.is(originPassed)), goTo(p.to(tableTrack))},
		{tableHostCheck, prioMiss, of.NewMatch(), deliver},
		{tableHostTrack, prioDrop, state(of.CTTracked | of.CTInvalid), drop},
		{tableHostTrack, prioSpecific, state(established | of.CTReply).With(of.FieldCTMark.IsMasked(markDenied, markDenied)), drop},
		{tableHostTrack, prioNormal, state(established).With(of.FieldCTMark.IsMasked(0, markDenied)), deliver},
		{tableHostDeliver, prioMiss, of.NewMatch(), toContainer},
	}
	for _, family := range families { // ct requires that the match is of IP
		rows = append(rows, row{tableHostTrack, prioMiss + 1, family, applyGoto(of.NewActions().CT(of.CT{
			Commit: true, ZoneFrom: zone(), Exec: of.NewActions().SetField(of.FieldCTMark.Is(0)),
		}), p.to(tableHostDeliver))})
	}
	// Already allowed: the host has routed it.
	passed := row{p.first(stageOutput), prioSpecific, of.NewMatch().With(regOrigin.is(originPassed)), apply(of.NewActions().OutputReg(regOutPort.all()))}
	if p.set.Routing {
		passed.do = goTo(p.to(tableDeliver))
	}
	rows = append(rows, passed)
	if !f.world {
		return rows
	}
	rows = append(rows, f.snatBase(p)...)
	rows = append(rows, row{tableHostNew, prioMiss, of.NewMatch(), goTo(p.to(tableHostEmit))})
	rows = append(rows, row{tableHop, prioSpecific, of.NewMatch().With(regOrigin.is(originHost)), goTo(p.to(tableDeliver))})
	for _, s := range append([]netip.Prefix{p.set.Host.Subnet4, p.set.Host.Subnet6}, notRouted...) {
		if s.IsValid() { // containers must not use each other's private addresses
			rows = append(rows, row{tableRoute, prioGeneral, of.NewMatch().Dst(s), drop})
		}
	}
	return rows
}

// hostCheck tracks connections of the host with the containers that match, where those are
// tracked because of rules or endpoint policies. Otherwise replies of the host would count
// as unsolicited.
func (p *Pipeline) hostCheck(containers of.Match) []row {
	if !p.set.Host.enabled() {
		return nil
	}
	look := apply(of.NewActions().CT(of.CT{ZoneFrom: zone(), Recirc: true, Table: p.to(tableHostTrack)}))
	return []row{{tableHostCheck, prioNormal, containers.IP(), look}, {tableHostCheck, prioNormal, containers.IPv6(), look}}
}

// network drops what is sent to an unused address of the tenant's own networks, so that it
// does not leave the overlay.
func (f hostAccess) network(p *Pipeline, n Network) []row {
	rows := f.snatNetwork(p, n)
	for _, s := range []netip.Prefix{n.Subnet4, n.Subnet6} {
		if !s.IsValid() {
			continue
		}
		// The host does not forward for local containers: that would permit spoofing.
		inside := of.NewMatch().With(regOrigin.is(originPassed)).With(regVRF.is(uint32(n.VRF))).Src(s)
		rows = append(rows, row{tableHostCheck, prioDrop, inside, drop})
		if f.world {
			rows = append(rows, row{tableRoute, prioGeneral, of.NewMatch().With(regVRF.is(uint32(n.VRF))).Dst(s), drop})
		}
	}
	return rows
}

// port returns the rows of the host's own port.
func (f hostAccess) port(p *Pipeline, o HostPort) []row {
	port := o.Port
	h := p.set.Host
	rows := []row{
		{tableClassify, prioNormal, of.NewMatch().InPort(port), applyGoto(of.NewActions().SetField(regOrigin.is(originPassed)), p.to(tableHostIn))},
		{tableHostEmit, prioNormal, of.NewMatch(), apply(of.NewActions().SetEthSrc(RouterMAC).SetEthDst(h.MAC).Output(port))},
	}
	toHost := applyGoto(of.NewActions().SetField(regOutPort.is(port)), p.to(tableTrack))
	local := of.NewMatch().With(regOrigin.is(originLocal))
	for _, a := range append(h.addrs(), o.Infra...) {
		if a.IsValid() {
			own := applyGoto(of.NewActions().SetField(regOrigin.is(originHost)), p.to(tableHostIn))
			rows = append(rows, row{tableClassify, prioSpecific, of.NewMatch().InPort(port).Src(host(a)), own})
		}
	}
	for _, a := range h.answers() {
		if !a.IsValid() {
			continue
		}
		switch p.mode {
		case VXLANRouting, VLANRouting:
			rows = append(rows, row{tableRoute, prioNormal, local.Dst(host(a)), toHost})
		case VXLANBridge:
			rows = append(rows, row{tableMAC, prioSpecific, local.Dst(host(a)), goTo(p.to(tableHostEmit))})
		case VLANBridge:
			rows = append(rows, row{tableSwitch, prioSpecific, local.Dst(host(a)), goTo(p.to(tableHostEmit))})
		}
	}
	if !p.set.Routing {
		return rows
	}
	out := tableHostEmit
	if f.world {
		out = tableHostOut
		rows = append(rows, row{tableRoute, prioMiss + 1, local.IP(), toHost}, row{tableRoute, prioMiss + 1, local.IPv6(), toHost})
	}
	return append(rows, row{tableDeliver, prioSpecific, of.NewMatch().With(regOutPort.is(port)), goTo(p.to(out))})
}

func (f hostAccess) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	rows := f.family(p, e, e.IPv4, e.Private4, p.set.Host.Addr4, e.OwnsIPv4)
	return append(rows, f.family(p, e, e.IPv6, e.Private6, p.set.Host.Addr6, e.OwnsIPv6)...)
}

// family returns the rows of one of an endpoint's addresses.
func (f hostAccess) family(p *Pipeline, e Endpoint, own, private, hostAddr netip.Addr, direct bool) []row {
	if !own.IsValid() || !hostAddr.IsValid() {
		return nil
	}
	const next = tableHostCheck
	arrived := of.NewActions().SetField(regVRF.is(uint32(e.VRF))).SetField(regOutPort.is(e.Port)).SetEthSrc(RouterMAC).SetEthDst(e.MAC)
	if !f.world {
		if !direct {
			return nil
		}
		return []row{{tableHostIn, prioNormal, of.NewMatch().Dst(host(own)), applyGoto(arrived, p.to(next))}}
	}
	if !private.IsValid() {
		return nil
	}
	zone := hostZone(e.VRF)
	ct := func(nat of.NAT, t table) of.CT {
		return of.CT{Commit: true, Zone: zone, NAT: nat, Recirc: true, Table: p.to(t)}
	}
	in, out := of.NAT{Kind: of.NATDest, Min: own}, of.NAT{Kind: of.NATSource, Min: private}
	if own == private { // a NAT without effect is not permitted (decision 0019)
		in, out = of.NAT{}, of.NAT{}
	}
	from := of.NewMatch().InPort(e.Port).Src(host(own))
	look := of.CT{Zone: zone, NAT: of.NAT{Kind: of.NATExisting}, Recirc: true, Table: p.to(tableHostNew)}
	rows := []row{
		{tableHostIn, prioNormal, of.NewMatch().Dst(host(private)), apply(arrived.CT(ct(in, next)))},
		{tableHostOut, prioNormal, from, apply(of.NewActions().CT(look))},
	}
	rows = append(rows, p.begin(tableHostNew, prioNormal, e, from, apply(of.NewActions().CT(ct(out, tableHostEmit))))...)
	if direct {
		// The host uses the endpoint's own address: so that is the source it must see,
		// unless it has asked for the private one.
		rows = append(rows, row{tableHostIn, prioNormal, of.NewMatch().Dst(host(own)), apply(arrived.CT(ct(of.NAT{}, next)))})
		rows = append(rows, p.begin(tableHostNew, prioDrop, e, from.Dst(host(hostAddr)), apply(of.NewActions().CT(ct(of.NAT{}, tableHostEmit))))...)
	}
	return rows
}

// hostNeighbor answers, in the bridge modes, ARP and neighbor discovery for the host: for
// the host's address, and in the VXLAN bridge also for the gateways, as no other router can
// have these.
type hostNeighbor struct{}

func (hostNeighbor) id() uint8 { return featureHost }

func (hostNeighbor) tables() []table {
	return []table{tableNeighbor, tableARPReply, tableNDReply, tableNDFinish}
}

func (f hostNeighbor) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	}
	return part{}
}

func (f hostNeighbor) base(p *Pipeline) []row {
	rows := append([]row{arpReplyRow()}, ndReplyRows(p)...)
	h := p.set.Host
	return append(append(rows, f.answers(p, of.NewMatch(), h.Addr4, h.Addr6)...), f.answers(p, of.NewMatch(), h.Pass4, h.Pass6)...)
}

func (f hostNeighbor) network(p *Pipeline, n Network) []row {
	if n.Encap != VXLAN {
		return nil
	}
	return f.answers(p, of.NewMatch().With(regSegment.is(n.Segment())), n.Gateway4, n.Gateway6)
}

func (hostNeighbor) answers(p *Pipeline, m of.Match, addr4, addr6 netip.Addr) []row {
	var rows []row
	if addr4.IsValid() {
		rows = append(rows, row{tableNeighbor, prioSpecific, m.ARP(arpRequest).ARPTPA(host(addr4)), answer(p, RouterMAC)})
	}
	if addr6.IsValid() {
		rows = append(rows, row{
			tableNeighbor, prioSpecific, m.ICMPv6(icmpv6NeighborSolicit).NDTarget(addr6),
			advertise(p, ndRouter|ndSolicited|ndOverride),
		})
	}
	return rows
}
