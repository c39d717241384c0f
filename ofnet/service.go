package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// service load-balances connections to a service over its providers, on the client's
// host, with the switch's connection tracking: the agent is not involved when a connection
// opens, and an open one stays with its provider whatever happens to the others.
//
//	service           is it for a service? look the connection up, and translate it
//	service-fragment  what service it is for, if it came in fragments (service_fragments.go)
//	service-state     known, to a provider that is still one: go on; new: choose
//	service-affinity  (learned) the provider this client had before
//	service-select    take that one, or choose
//	service-slot      which provider has the number that was drawn
//	service-nat       remember the connection with its provider, translate it
//	service-learn     have the switch count for this client and provider
//	service-count     (learned) counts
//	service-mixed     (learned) has this client come to this provider through a service?
//	service-direct    remember a new connection straight to a provider
//	service-port      ... under another port
//	service-back      what a container that is its own provider answers itself
//	service-out       to the container itself? else forward, to its MAC in a bridge
//	...               route, policy: both see client and provider
//	service-reply     what a provider answers looks as if from the service again
//
// A client may use one port of its own for a connection to a service and another one
// straight to its provider. Answers to both look alike, so connections straight to a
// provider are tracked as well. Where the translated one comes second, the switch
// gives it another port by itself. Where the client has come to the provider through a
// service before, the straight one gets a port of the other half of all ports.
//
// Nothing is ever translated to what it is already: of such a connection Open vSwitch
// 3.1 keeps a twin under the same hash, finds it once the connection itself has expired,
// and aborts (docs/decisions/0019-translate-only-what-changes.md).
type service struct{}

func (service) id() uint8 { return featureService }

func (service) tables() []table {
	return []table{
		tableARPReply, tableNDReply, tableNDFinish, tableService, tableServiceFragment, tableServiceState, tableServiceAffinity, tableServiceSelect,
		tableServiceSlot, tableServiceNAT, tableServiceLearn, tableServiceCount, tableServiceMixed, tableServiceDirect, tableServicePort,
		tableServiceBack, tableServiceOut, tableServiceReply,
	}
}

// Learned lists the tables whose flows the switch learns itself.
func (p *Pipeline) Learned() []uint8 {
	return []uint8{p.to(tableServiceAffinity), p.to(tableServiceCount), p.to(tableServiceMixed)}
}

// countIdle is how long counters stay without packets, in seconds.
const countIdle = 3600

const (
	trackedNew     = of.CTTracked | of.CTNew
	trackedEst     = of.CTTracked | of.CTEst
	trackedReply   = of.CTTracked | of.CTEst | of.CTReply
	trackedRelated = of.CTTracked | of.CTRel
	trackedInvalid = of.CTTracked | of.CTInvalid
)

// ipFamily is what differs between the families.
type ipFamily struct {
	ethType       uint16
	src, dst, vip of.Field
	ctDst         of.Field // destination of the first packet of the connection
	icmp          uint8
	echoRequest   of.Match
	echoReply     of.FieldValue
}

func ipFamilies() []ipFamily {
	return []ipFamily{
		{
			of.EthTypeIPv4, of.FieldIPv4Src, of.FieldIPv4Dst, regVIP.field(), of.FieldCTIPv4Dst, of.ProtoICMP,
			of.NewMatch().ICMPv4(icmpv4EchoRequest), of.FieldICMPv4Type.Is(icmpv4EchoReply),
		},
		{
			of.EthTypeIPv6, of.FieldIPv6Src, of.FieldIPv6Dst, of.FieldXXReg(int(regVIP) / 4), of.FieldCTIPv6Dst, of.ProtoICMPv6,
			of.NewMatch().ICMPv6(icmpv6EchoRequest), of.FieldICMPv6Type.Is(icmpv6EchoReply),
		},
	}
}

func familyOf(a netip.Addr) ipFamily {
	if a.Is4() {
		return ipFamilies()[0]
	}
	return ipFamilies()[1]
}

// portFields are the port fields of a protocol.
func portFields(proto uint8) (src, dst of.Field) {
	switch proto {
	case of.ProtoTCP:
		return of.FieldTCPSrc, of.FieldTCPDst
	case of.ProtoUDP:
		return of.FieldUDPSrc, of.FieldUDPDst
	}
	return of.FieldSCTPSrc, of.FieldSCTPDst
}

// protocols are the protocols that services can use.
func protocols() []uint8 { return []uint8{of.ProtoTCP, of.ProtoUDP, of.ProtoSCTP} }

// inServiceZone sets the zone of the VRF's services.
func inServiceZone(a of.Actions) of.Actions {
	return a.SetField(regZone.is(serviceZone)).Move(regVRF.bits(0, 14), regZone.bits(0, 14))
}

func serviceCT(c of.CT) of.CT {
	c.ZoneFrom = regZone.bits(0, 15)
	return c
}

// translate looks up the connection and continues in t.
func translate(p *Pipeline, a of.Actions, t table) of.Instructions {
	return apply(inServiceZone(a).CT(serviceCT(of.CT{NAT: of.NAT{Kind: of.NATExisting}, Recirc: true, Table: p.to(t)})))
}

func (f service) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	case Service:
		return f.service(p, o)
	}
	return part{}
}

func (f service) base(p *Pipeline) []row {
	state := func(bits uint32) of.Match { return of.NewMatch().CTState(bits, bits) }
	rows := []row{
		arpReplyRow(),
		{tableService, prioMiss, of.NewMatch(), p.gotoStage(stageForward)},
		{tableServiceState, prioDrop, state(trackedInvalid), drop},
		{tableServiceState, prioSpecific, state(trackedRelated), goTo(p.to(tableServiceOut))},
		// The provider no longer is one, or was learned from a connection.
		{tableServiceState, prioGeneral, state(trackedEst), goTo(p.to(tableReject))},
		{tableServiceOut, prioMiss, of.NewMatch(), p.gotoStage(stageForward)},
		{tableServiceReply, prioMiss, of.NewMatch(), p.gotoStage(stageOutput)},
		// Replies of a container that is its own provider: back to where they came
		// from.
		{tableServiceBack, prioNormal, state(trackedReply), apply(turnAround().OutputInPort())},
	}
	if p.set.Routing && p.set.Encap == VXLAN { // the client's host does it
		rows = append(rows, row{tableServiceReply, prioSpecific, of.NewMatch().With(regOutPort.is(p.set.TunnelPort)), p.gotoStage(stageOutput)})
	}
	rows = append(rows, ndReplyRows(p)...)
	rows = append(rows, fragmentsFixed(p)...)
	for _, ip := range ipFamilies() {
		family := of.NewMatch().EthType(ip.ethType)
		rows = append(rows,
			row{tableServicePort, prioMiss + 1, family, apply(of.NewActions().CT(serviceCT(of.CT{Commit: true, Recirc: true, Table: p.to(tableServiceOut)})))},
			row{tableServiceState, prioNormal, ip.echoRequest, apply(turnAround().
				MoveField(ip.src, ip.dst).MoveField(ip.vip, ip.src).SetField(ip.echoReply).OutputInPort())},
			row{tableServiceBack, prioGeneral, family, applyGoto(of.NewActions().MoveField(ip.vip, ip.dst), p.to(tableReject))})
		for _, proto := range protocols() {
			direct := family.IPProto(proto).With(regService.is(0))
			rows = append(rows,
				row{tableServiceState, prioNormal, direct.CTState(trackedEst, trackedEst), p.gotoStage(stageForward)},
				row{tableServiceState, prioNormal, direct.CTState(trackedNew, trackedNew), commitDirect(p)})
			rows = append(rows, f.direct(p, ip, proto)...)
			rows = append(rows, row{tableServiceLearn, prioNormal, family.IPProto(proto), applyGoto(
				of.NewActions().Resubmit(p.to(tableServiceCount)).Learn(countOut(p, ip, proto)).Learn(countIn(p, ip, proto)).Learn(mixed(p, ip, proto)),
				p.to(tableServiceOut))})
		}
	}
	return rows
}

// countOut and countIn learn the flows that count packets between a client and a provider
// of a frontend, in each direction.
func countOut(p *Pipeline, ip ipFamily, proto uint8) of.Learn {
	return of.Learn{
		Table: p.to(tableServiceCount), Priority: prioNormal, IdleTimeout: countIdle, Cookie: learned(featureCountOut),
		Specs: append(sameWay(ip, proto), of.LearnMatchField(regService.all(), regService.all())),
	}
}

// sameWay matches packets with this packet's client, provider and port.
func sameWay(ip ipFamily, proto uint8) []of.LearnSpec {
	_, dst := portFields(proto)
	return []of.LearnSpec{
		of.LearnMatch(of.FieldEthType.All(), uint64(ip.ethType)),
		of.LearnMatch(of.FieldIPProto.All(), uint64(proto)),
		of.LearnMatchField(ip.src.All(), ip.src.All()),
		of.LearnMatchField(ip.dst.All(), ip.dst.All()),
		of.LearnMatchField(dst.All(), dst.All()),
	}
}

// samePort matches packets from this packet's client to its provider at a port.
func samePort(ip ipFamily, proto uint8, port uint16) []of.LearnSpec {
	_, dst := portFields(proto)
	return []of.LearnSpec{
		of.LearnMatch(of.FieldEthType.All(), uint64(ip.ethType)),
		of.LearnMatch(of.FieldIPProto.All(), uint64(proto)),
		of.LearnMatch(dst.All(), uint64(port)),
		of.LearnMatchField(ip.src.All(), ip.src.All()),
		of.LearnMatchField(ip.dst.All(), ip.dst.All()),
	}
}

func countIn(p *Pipeline, ip ipFamily, proto uint8) of.Learn {
	src, dst := portFields(proto)
	return of.Learn{
		Table: p.to(tableServiceCount), Priority: prioNormal, IdleTimeout: countIdle, Cookie: learned(featureCountIn),
		Specs: []of.LearnSpec{
			of.LearnMatch(of.FieldEthType.All(), uint64(ip.ethType)),
			of.LearnMatch(of.FieldIPProto.All(), uint64(proto)),
			of.LearnMatchField(ip.src.All(), ip.dst.All()),
			of.LearnMatchField(ip.dst.All(), ip.src.All()),
			of.LearnMatchField(src.All(), dst.All()),
			of.LearnMatchField(regVRF.all(), regVRF.all()),
			of.LearnMatch(regService.all(), 0),
		},
	}
}

// mixedLifetime is how long it is remembered, after the last packet, that a client has
// reached a provider through a service, in seconds: the longest lifetime of a flow.
const mixedLifetime = 1<<16 - 1

// mixed learns that a client has reached a provider through a service.
func mixed(p *Pipeline, ip ipFamily, proto uint8) of.Learn { return mixedLearn(p, sameWay(ip, proto)) }

func mixedLearn(p *Pipeline, specs []of.LearnSpec) of.Learn {
	return of.Learn{
		Table: p.to(tableServiceMixed), Priority: prioNormal, HardTimeout: mixedLifetime, Cookie: learned(featureMixed),
		Specs: append(specs,
			of.LearnMatchField(regVRF.all(), regVRF.all()),
			of.LearnLoad(comesMixed, regScratch.all())),
	}
}

// comesMixed, in regScratch: the client has also reached the provider through a service.
const comesMixed = 3

// commitDirect commits a new connection that is not translated.
func commitDirect(p *Pipeline) of.Instructions {
	return applyGoto(of.NewActions().Resubmit(p.to(tableServiceMixed)), p.to(tableServiceDirect))
}

// direct returns the rows that commit a connection of a protocol without translation,
// unless its client may have the same connection to the provider through a service. It is
// for services whose address is the provider's own.
func (service) direct(p *Pipeline, ip ipFamily, proto uint8) []row {
	m := of.NewMatch().EthType(ip.ethType).IPProto(proto)
	rows := []row{
		{tableServiceDirect, prioNormal, m, commitAsIs(p, tableServiceOut)},
		{tableServiceDirect, prioSpecific, m.With(regService.is(0)), commitAsIs(p, p.first(stageForward))},
	}
	for _, half := range otherPorts(proto) {
		do := applyGoto(of.NewActions().SetField(regScratch.is(half.number)), p.to(tableServicePort))
		rows = append(rows, row{tableServiceDirect, prioDrop, m.With(regScratch.is(comesMixed)).With(half.from), do})
	}
	return rows
}

// commitAsIs commits a connection without translating it.
func commitAsIs(p *Pipeline, next table) of.Instructions {
	return apply(of.NewActions().CT(serviceCT(of.CT{Commit: true, Recirc: true, Table: p.to(next)})))
}

// otherHalf maps one half of a protocol's source ports to the other.
type otherHalf struct {
	number   uint32 // in regScratch
	from     of.FieldValue
	min, max uint16
}

// otherPorts are ranges for a source NAT that always changes the port.
func otherPorts(proto uint8) [2]otherHalf {
	src, _ := portFields(proto)
	return [2]otherHalf{
		{comesMixed + 1, src.IsMasked(portHalf, portHalf), 1024, portHalf - 1},
		{comesMixed + 2, src.IsMasked(0, portHalf), portHalf, 1<<16 - 1},
	}
}

// portHalf is the bit that distinguishes the halves of the port range.
const portHalf = 1 << 15

// otherPort returns the rows that give an endpoint's connection a port of the other half:
// Open vSwitch can select ports only together with an address.
func (service) otherPort(p *Pipeline, e Endpoint, own netip.Addr) []row {
	var rows []row
	for _, half := range otherPorts(of.ProtoTCP) {
		ct := serviceCT(of.CT{
			Commit: true, Recirc: true, Table: p.to(tableServiceOut),
			NAT: of.NAT{Kind: of.NATSource, Min: own, MinPort: half.min, MaxPort: half.max},
		})
		m := of.NewMatch().InPort(e.Port).Src(host(own)).With(regScratch.is(half.number))
		rows = append(rows, row{tableServicePort, prioNormal, m, apply(of.NewActions().SetField(regScratch.is(0)).CT(ct))})
	}
	return rows
}

// learned is the cookie of learned flows. It has no round, so that the flow that learns
// them is the same after a restart.
func learned(feature uint8) uint64 { return cookie(0, feature, "")&^0xffffffff | cookieLearned }

// endpoint returns the rows that forward a translated packet to its container where no
// route does: back to itself, or by its MAC.
func (f service) endpoint(p *Pipeline, e Endpoint) []row {
	var rows []row
	for _, a := range []netip.Addr{e.IPv4, e.IPv6} {
		if !a.IsValid() {
			continue
		}
		ip := familyOf(a)
		if e.Local() {
			self := of.NewMatch().InPort(e.Port).Dst(host(a))
			rows = append(rows, row{tableServiceOut, prioSpecific, self, apply(turnAround().MoveField(ip.vip, ip.src).OutputInPort())})
			rows = append(rows, f.otherPort(p, e, a)...)
		}
		if p.set.Routing {
			continue
		}
		m := of.NewMatch().With(regVRF.is(uint32(e.VRF))).With(regSegment.is(e.Segment())).Dst(host(a))
		rows = append(rows, row{tableServiceOut, prioNormal, m, applyGoto(of.NewActions().SetEthDst(e.MAC), p.to(p.first(stageForward)))})
	}
	return rows
}
