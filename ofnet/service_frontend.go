package ofnet

import (
	"net/netip"
	"time"

	of "github.com/contiv/netplugin/libopenflow"
)

func (service) service(p *Pipeline, s Service) part {
	var out part
	vips := map[netip.Addr]bool{}
	for _, f := range s.Frontends {
		if vip := f.Addr.Addr(); !vips[vip] {
			vips[vip] = true
			out.rows = append(out.rows, vipRows(p, s.VRF, vip)...)
		}
		rows, groups := frontendRows(p, s, f)
		out.rows, out.groups = append(out.rows, rows...), append(out.groups, groups...)
	}
	out.rows = distinct(append(out.rows, fragmentsOf(p, s)...))
	return out
}

// vipRows answer ARP and neighbor discovery for an address of a service.
func vipRows(p *Pipeline, vrf uint16, vip netip.Addr) []row {
	ip := familyOf(vip)
	m := of.NewMatch().With(regVRF.is(uint32(vrf)))
	a := of.NewActions().SetField(ip.vip.IsAddr(vip))
	resolve := row{tableNeighbor, prioSpecific, arpFor(vrf, vip), answer(p, RouterMAC)}
	if vip.Is4() {
		resolve.do = answer(p, ServiceMAC(vip))
	} else {
		resolve = row{tableNeighbor, prioSpecific, ndFor(vrf, vip), advertise(p, ndSolicited|ndOverride)}
	}
	return []row{
		resolve,
		{tableService, prioGeneral + 1, m.IPProto(ip.icmp).Dst(host(vip)), translate(p, a, p.afterService())},
		// No port of the service: perhaps the reply of a container that is its own
		// provider, to which the request seemed to come from the service.
		{tableService, prioGeneral, m.Dst(host(vip)), translate(p, a.MoveField(ip.src, ip.dst), tableServiceBack)},
	}
}

// toProvider commits a connection with its provider.
func toProvider(p *Pipeline, s Service, f Frontend, v Provider) of.Instructions {
	a := of.NewActions()
	if s.Affinity > 0 {
		a = a.Learn(affinity(p, familyOf(f.Addr.Addr()), s.Affinity))
	}
	if v.Addr == f.Addr { // nothing to translate
		return applyGoto(a.Resubmit(p.to(tableServiceMixed)), p.to(tableServiceDirect))
	}
	return apply(a.CT(serviceCT(of.CT{
		Commit: true, Recirc: true, Table: p.to(tableServiceLearn),
		NAT: of.NAT{Kind: of.NATDest, Min: v.Addr.Addr(), MinPort: v.Addr.Port()},
	})))
}

// chooseAgain uses the provider that the client had before, if one is known.
func chooseAgain(p *Pipeline) of.Instructions {
	return applyGoto(of.NewActions().Resubmit(p.to(tableServiceAffinity)), p.to(tableServiceSelect))
}

// mostBuckets is the number of buckets that fit into a message.
const mostBuckets = 1000

func frontendRows(p *Pipeline, s Service, f Frontend) (rows []row, groups []of.Group) {
	ip := familyOf(f.Addr.Addr())
	src, dst := portFields(f.Proto)
	byNumber := of.NewMatch().With(regService.is(f.Number)).EthType(ip.ethType)
	mine := byNumber.IPProto(f.Proto)
	add := func(t table, priority uint16, m of.Match, do of.Instructions) {
		rows = append(rows, row{t, priority, m, do})
	}
	add(tableService, prioNormal,
		of.NewMatch().With(regVRF.is(uint32(s.VRF))).IPProto(f.Proto).Dst(host(f.Addr.Addr())).With(dst.Is(uint64(f.Addr.Port()))),
		translate(p, of.NewActions().SetField(regService.is(f.Number)).SetField(ip.vip.IsAddr(f.Addr.Addr())), p.afterService()))

	numbers := numberProviders(f.Providers)
	var open []uint32 // numbers of those that accept connections
	count := of.NewActions().Resubmit(p.to(tableServiceCount))
	for i, v := range f.Providers {
		port := uint64(v.Addr.Port())
		add(tableServiceState, prioNormal, mine.CTState(trackedEst, trackedEst).Dst(host(v.Addr.Addr())).With(dst.Is(port)),
			applyGoto(count.Learn(mixed(p, ip, f.Proto)), p.to(tableServiceOut)))
		reply := of.NewMatch().With(regVRF.is(uint32(s.VRF))).Src(host(v.Addr.Addr()))
		straight := of.NewMatch().With(regVRF.is(uint32(s.VRF))).IPProto(f.Proto).Dst(host(v.Addr.Addr())).With(dst.Is(port))
		add(tableService, prioGeneral+2, straight, translate(p, of.NewActions(), p.afterService()))
		add(tableServiceReply, prioNormal, reply.IPProto(f.Proto).With(src.Is(port)), translate(p, count, p.first(stageOutput)))
		add(tableServiceReply, prioNormal, reply.IPProto(ip.icmp), translate(p, of.NewActions(), p.first(stageOutput)))
		if v.Draining {
			continue
		}
		open = append(open, numbers[i])
		add(tableServiceNAT, prioNormal, byNumber.With(regProvider.is(numbers[i])), toProvider(p, s, f, v))
		if s.Affinity > 0 {
			add(tableServiceSelect, prioSpecific, byNumber.With(regProvider.is(numbers[i])), goTo(p.to(tableServiceNAT)))
		}
	}

	fresh := mine.CTState(trackedNew, trackedNew)
	if len(open) == 0 {
		refuse := goTo(p.to(tableReject))
		if f.Drop {
			refuse = drop
		}
		add(tableServiceState, prioNormal, fresh, refuse)
		return rows, nil
	}
	choose, more, group := chooser(p, f, byNumber, open)
	rows = append(rows, more...)
	if s.Affinity == 0 {
		add(tableServiceState, prioNormal, fresh, choose)
		return rows, group
	}
	add(tableServiceState, prioNormal, fresh, chooseAgain(p))
	add(tableServiceSelect, prioNormal, mine, choose)
	return rows, group
}

// chooser spreads new connections over the providers. A select group avoids the switch's
// slow path for each connection; but it hashes the ports of TCP and SCTP only, so
// connections of UDP draw a slot.
func chooser(p *Pipeline, f Frontend, mine of.Match, open []uint32) (do of.Instructions, rows []row, groups []of.Group) {
	if f.Proto != of.ProtoUDP && len(open) <= mostBuckets {
		g := of.Group{ID: serviceGroup | f.Number, Type: of.GroupTypeSelect}
		for _, n := range open {
			g.Buckets = g.Buckets.AddWeighted(100, of.NewActions().SetField(regProvider.is(n)).Resubmit(p.to(tableServiceNAT)))
		}
		return apply(of.NewActions().Group(g.ID)), nil, []of.Group{g}
	}
	draw := of.NewActions().Multipath(of.Multipath{
		Fields: of.HashSymmetricL3UDP, Basis: drawBasis, Algorithm: of.MultipathModuloN, Links: uint32(len(open)),
		Dst: regProvider.all(),
	})
	for slot, n := range open {
		rows = append(rows, row{
			tableServiceSlot, prioNormal, mine.With(regProvider.is(uint32(slot))),
			applyGoto(of.NewActions().SetField(regProvider.is(n)), p.to(tableServiceNAT)),
		})
	}
	return applyGoto(draw, p.to(tableServiceSlot)), rows, nil
}

// serviceGroup is a bit that flood groups do not have. The numbers of frontends have
// neither this bit nor the one above.
const serviceGroup = 1 << 30

// MaxFrontend is the largest number of a frontend.
const MaxFrontend = serviceGroup - 1

// drawBasis makes the hash different from others over the same fields.
const drawBasis = 0x5eaf

// affinity learns the provider of a frontend's client. The learned flow lasts as long as
// new connections arrive.
func affinity(p *Pipeline, ip ipFamily, d time.Duration) of.Learn {
	service, provider := regService.all(), regProvider.all()
	return of.Learn{
		Table: p.to(tableServiceAffinity), Priority: prioNormal, Cookie: learned(featureAffinity),
		IdleTimeout: uint16(min(max(d/time.Second, 1), 1<<16-1)),
		Specs: []of.LearnSpec{
			of.LearnMatch(of.FieldEthType.All(), uint64(ip.ethType)),
			of.LearnMatchField(ip.src.All(), ip.src.All()),
			of.LearnMatchField(service, service),
			of.LearnLoadField(provider, provider),
		},
	}
}
