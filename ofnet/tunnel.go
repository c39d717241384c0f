package ofnet

import (
	of "github.com/contiv/netplugin/libopenflow"
)

// tunnels lets in what comes through tunnels from hosts of the cluster. Whoever can send
// a datagram to this host could say that it is a frame of any network (RFC 7348 section
// 7); an address that is no host's ends here, and is counted.
//
//	tunnel      is it from a host's tunnel address?
//	tunnel-net  which network is it of?
type tunnels struct{}

func (tunnels) id() uint8       { return featureTunnel }
func (tunnels) tables() []table { return []table{tableTunnel, tableTunnelNet} }

func (f tunnels) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Base:
		return part{rows: f.base(p)}
	case Network:
		return part{rows: f.network(p, o)}
	case Peer:
		return part{rows: []row{{tableTunnel, prioNormal, of.NewMatch().TunSrc(o.VTEP), goTo(p.to(tableTunnelNet))}}}
	}
	return part{}
}

func (tunnels) base(p *Pipeline) []row {
	rows := []row{{tableClassify, prioNormal, of.NewMatch().InPort(p.set.TunnelPort), goTo(p.to(tableTunnel))}}
	if p.set.logs() {
		rows = append(rows, row{tableTunnel, prioMiss, of.NewMatch(), p.deny(DeniedByTunnel)})
	}
	return rows
}

func (tunnels) network(p *Pipeline, n Network) []row {
	if n.Encap != VXLAN {
		return nil
	}
	a := of.NewActions().SetField(regOrigin.is(originTunnel)).SetField(regSegment.is(n.VNI)).SetField(regVRF.is(uint32(n.VRF)))
	return []row{{tableTunnelNet, prioNormal, of.NewMatch().TunID(uint64(n.VNI)), applyGoto(a, p.to(p.first(stageForward)))}}
}

// DropForeign is the reason of drops of tunneled packets from foreign hosts.
const DropForeign = "tunnel"
