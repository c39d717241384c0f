package ofnet

import of "github.com/contiv/netplugin/libopenflow"

// classifier sets the network and VRF of a packet by its port. It drops malformed frames
// and those from ports without endpoint. With uplinks it also accepts frames from the
// physical network of the bridge.
type classifier struct{ uplinks bool }

func (classifier) id() uint8 { return featureClassify }

func (f classifier) tables() []table {
	if f.uplinks {
		return []table{tableClassify, tableUplink}
	}
	return []table{tableClassify}
}

func (f classifier) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	case GroupVLAN:
		return part{rows: f.vlan(p, o.Network, o.Tag)}
	case Uplink:
		return part{rows: f.uplink(p, o)}
	case Endpoint:
		return part{rows: f.endpoint(p, o), meters: o.QoS.meters(o)}
	}
	return part{}
}

func (f classifier) base(p *Pipeline) []row {
	rows := []row{{tableClassify, prioDrop, of.NewMatch().EthSrcMasked(multicastBit, multicastBit), drop}}
	if p.set.Encap == VXLAN {
		// VXLAN networks have no tags; drop frames that containers tag.
		rows = append(rows, row{tableClassify, prioDrop, of.NewMatch().VLANTagged(), drop})
	}
	if f.uplinks { // a VLAN without network
		rows = append(rows, row{tableUplink, prioMiss, of.NewMatch(), p.gotoStage(stageForward)})
	}
	return rows
}

func (classifier) endpoint(p *Pipeline, e Endpoint) []row {
	if !e.Local() {
		return nil
	}
	a := of.NewActions().SetField(regSegment.is(e.Segment())).SetField(regVRF.is(uint32(e.VRF)))
	if e.Group != 0 {
		a = a.SetField(regSrcGrp.is(e.Group))
	}
	from := of.NewMatch().InPort(e.Port)
	if e.Encap == VLAN { // the port has its VLAN; a container must not choose one
		from = from.VLANUntagged()
	}
	rows := []row{{tableClassify, prioNormal, from, e.QoS.sent(e).Apply(a).Goto(p.to(p.first(stageEntry)))}}
	if e.QoS.DSCP != 0 {
		a = a.SetField(of.FieldIPDSCP.Is(uint64(e.QoS.DSCP)))
		for _, m := range []of.Match{from.IP(), from.IPv6()} {
			rows = append(rows, row{tableClassify, prioSpecific, m, e.QoS.sent(e).Apply(a).Goto(p.to(p.first(stageEntry)))})
		}
	}
	return rows
}

func (f classifier) network(p *Pipeline, n Network) []row {
	if n.Encap != VXLAN {
		return f.vlan(p, n, n.Tag)
	}
	return nil // see tunnels
}

// vlan maps a VLAN of the uplinks to a network: the VLAN is that of the network, or of one
// of its groups.
func (f classifier) vlan(p *Pipeline, n Network, tag uint16) []row {
	if !f.uplinks {
		return nil
	}
	a := of.NewActions().SetField(regSegment.is(n.Segment())).SetField(regVRF.is(uint32(n.VRF)))
	return []row{{tableUplink, prioNormal, of.NewMatch().VLAN(tag), applyGoto(a, p.to(p.first(stageForward)))}}
}

func (f classifier) uplink(p *Pipeline, u Uplink) []row {
	if !f.uplinks {
		return nil
	}
	a := of.NewActions().SetField(regOrigin.is(originUplink))
	return []row{{tableClassify, prioNormal, of.NewMatch().InPort(u.Port), applyGoto(a, p.to(tableUplink))}}
}
