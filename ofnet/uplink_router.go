package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// uplinkRouter connects the router to the links beyond the uplinks. Two kinds of frame are
// addressed to its MAC there: a frame with a network's VLAN comes from another host, whose
// router has located the endpoint here, and the VLAN identifies the tenant; an untagged one
// comes from a router of the physical network, for which the endpoints of all tenants are
// in one address space.
type uplinkRouter struct{}

func (uplinkRouter) id() uint8       { return featureUplink }
func (uplinkRouter) tables() []table { return []table{tableUplink, tableUplinkOut} }

func (f uplinkRouter) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Network:
		return part{rows: f.network(p, o)}
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	case Uplink:
		return part{rows: f.uplink(p, o)}
	case RouterPort:
		return part{rows: f.port(p, o)}
	}
	return part{}
}

func (uplinkRouter) network(p *Pipeline, n Network) []row {
	in := of.NewActions().PopVLAN().SetField(regSegment.is(n.Segment())).SetField(regVRF.is(uint32(n.VRF)))
	out := of.NewActions().PushVLAN().SetVLAN(n.Tag).SetEthSrc(p.set.HostMAC)
	return []row{
		{tableUplink, prioNormal, of.NewMatch().VLAN(n.Tag).EthDst(p.set.HostMAC), applyGoto(in, p.to(tableRoute))},
		{
			tableDeliver, prioSpecific, of.NewMatch().With(regNextHop.is(hopEndpoint)).With(regDstNet.is(n.Segment())),
			applyGoto(out, p.to(tableUplinkOut)),
		},
	}
}

func (uplinkRouter) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	outside := of.NewMatch().With(regOrigin.is(originUplink)).With(regVRF.is(0))
	rows := p.routes(outside, e, p.reachWith(of.NewActions().SetField(regVRF.is(uint32(e.VRF))), e))
	for i := range rows { // if tenants share an address, the tenant with the lowest number has it outside
		rows[i].priority = prioOutside - min(e.VRF, prioOutside-prioDrop)
	}
	return rows
}

// uplink gives every uplink a priority of its own: packets use the first one, by number,
// that is up.
func (uplinkRouter) uplink(p *Pipeline, u Uplink) []row {
	in := of.NewActions().SetField(regOrigin.is(originUplink))
	rows := []row{{tableClassify, prioNormal, of.NewMatch().InPort(u.Port), applyGoto(in, p.to(tableUplink))}}
	if u.Down {
		return rows
	}
	return append(rows, row{tableUplinkOut, prioNormal + uint16(^u.Port&0x7fff), of.NewMatch(), apply(of.NewActions().Output(u.Port))})
}
