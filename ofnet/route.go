package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// router forwards by destination address inside a VRF. Every endpoint has a row; an address
// without one is not routed, so tenants are isolated even when their subnets overlap.
type router struct{}

func (router) id() uint8       { return featureRoute }
func (router) tables() []table { return []table{tableRoute, tableHop, tableDeliver} }

func (f router) part(p *Pipeline, o Object) part {
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

func (router) base(p *Pipeline) []row {
	onward := func(a of.Actions) of.Instructions {
		return applyGoto(a.SetEthSrc(RouterMAC), p.to(tableDeliver))
	}
	return []row{
		{tableHop, prioMiss + 1, of.NewMatch().IP(), onward(of.NewActions().DecTTL())},
		{tableHop, prioMiss + 1, of.NewMatch().IPv6(), onward(of.NewActions().DecTTL())},
		{tableDeliver, prioNormal, of.NewMatch(), apply(of.NewActions().OutputReg(regOutPort.all()))},
	}
}

func (router) network(p *Pipeline, n Network) []row {
	// Inside one network a packet appears bridged to its sender: it keeps its TTL, so
	// protocols that require a neighbor on the link (TTL 1 or 255) work. The sending
	// host has set the network of the destination; a packet from a tunnel carries it in
	// its VNI, and its TTL is not decremented twice.
	same := of.NewMatch().With(regSegment.is(n.Segment())).With(regDstNet.is(n.Segment()))
	rows := []row{{
		tableHop, prioNormal, same,
		applyGoto(of.NewActions().SetEthSrc(RouterMAC), p.to(tableDeliver)),
	}}
	vrf := of.NewMatch().With(regOrigin.is(originLocal)).With(regVRF.is(uint32(n.VRF)))
	if n.Gateway4.IsValid() {
		echo := turnAround().MoveField(of.FieldIPv4Src, of.FieldIPv4Dst).SetField(of.FieldIPv4Src.IsAddr(n.Gateway4)).
			SetField(of.FieldICMPv4Type.Is(icmpv4EchoReply)).OutputInPort()
		rows = append(rows, row{tableRoute, prioSpecific, vrf.ICMPv4(icmpv4EchoRequest).IPv4Dst(host(n.Gateway4)), apply(echo)})
	}
	if n.Gateway6.IsValid() {
		echo := turnAround().MoveField(of.FieldIPv6Src, of.FieldIPv6Dst).SetField(of.FieldIPv6Src.IsAddr(n.Gateway6)).
			SetField(of.FieldICMPv6Type.Is(icmpv6EchoReply)).OutputInPort()
		rows = append(rows, row{tableRoute, prioSpecific, vrf.ICMPv6(icmpv6EchoRequest).IPv6Dst(host(n.Gateway6)), apply(echo)})
	}
	return rows
}

// turnAround sends a frame back from the router, to answer pings to gateways.
func turnAround() of.Actions {
	return of.NewActions().MoveField(of.FieldEthSrc, of.FieldEthDst).SetEthSrc(RouterMAC)
}

func (router) endpoint(p *Pipeline, e Endpoint) []row {
	from := of.NewMatch().With(regVRF.is(uint32(e.VRF)))
	if !e.Local() && e.Encap == VLAN { // a frame from the link never goes back to it
		from = from.With(regOrigin.is(originLocal))
	}
	rows := p.routes(from, e, p.reach(e))
	if e.QoS.limits(e) {
		deliver := of.NewActions().OutputReg(regOutPort.all())
		rows = append(rows, row{tableDeliver, prioSpecific, of.NewMatch().With(regOutPort.is(e.Port)), e.QoS.received(e).Apply(deliver)})
	}
	return rows
}

// routes are the rows that apply do to packets to an endpoint's addresses.
func (p *Pipeline) routes(from of.Match, e Endpoint, do of.Instructions) []row {
	var rows []row
	if e.IPv4.IsValid() {
		rows = append(rows, row{tableRoute, prioNormal, from.IP().IPv4Dst(host(e.IPv4)), do})
	}
	if e.IPv6.IsValid() {
		rows = append(rows, row{tableRoute, prioNormal, from.IPv6().IPv6Dst(host(e.IPv6)), do})
	}
	return rows
}

// reach forwards to an endpoint. Endpoints of one network and group on one remote host
// share one value, which saves memory with thousands of them.
func (p *Pipeline) reach(e Endpoint) of.Instructions {
	if e.Local() {
		return p.reachWith(of.NewActions(), e)
	}
	key := tunnelKey{e.VTEP, e.Segment(), 0}
	if e.Policed {
		key.group = e.Group
	}
	do, ok := p.tunnels[key]
	if !ok {
		do = p.reachWith(of.NewActions(), e)
		p.tunnels[key] = do
	}
	return do
}

func (p *Pipeline) reachWith(a of.Actions, e Endpoint) of.Instructions {
	group := func(a of.Actions) of.Actions {
		if e.Policed && e.Group != 0 {
			return a.SetField(regDstGrp.is(e.Group))
		}
		return a
	}
	if !e.Local() && e.Encap == VLAN && !e.VTEP.IsValid() { // its host is on another link
		return applyGoto(group(a), p.to(tableExternal))
	}
	a = group(a.SetField(regDstNet.is(e.Segment())))
	switch {
	case e.Local():
		a = a.SetField(regOutPort.is(e.Port)).SetEthDst(e.MAC)
	case e.Encap == VLAN:
		a = a.SetField(regNextHop.is(hopEndpoint)).SetEthDst(HostMAC(e.VTEP))
	default:
		a = a.SetField(regOutPort.is(p.set.TunnelPort)).SetEthDst(RouterMAC).SetTunID(uint64(e.VNI))
		a = toVTEP(a, e.VTEP)
	}
	return applyGoto(a, p.to(tableTrack))
}
