package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// tunnels lets in what comes through tunnels from hosts of the cluster. Whoever can send
// a datagram to this host could say that it is a frame of any network (RFC 7348 section
// 7); an address that is no host's ends here, and is counted.
//
//	tunnel      is it from a host's tunnel address?
//	tunnel-net  which network is it of?
type tunnels struct{ noRows }

func (tunnels) id() uint8       { return featureTunnel }
func (tunnels) tables() []table { return []table{tableTunnel, tableTunnelNet} }

func (tunnels) fixed(p *Pipeline) []row {
	return []row{{tableClassify, prioNormal, of.NewMatch().InPort(p.set.TunnelPort), goTo(p.to(tableTunnel))}}
}

func (tunnels) network(p *Pipeline, n Network) []row {
	if n.Encap != VXLAN {
		return nil
	}
	a := of.NewActions().SetReg(regOrigin, originTunnel).SetReg(regSegment, n.VNI).SetReg(regVRF, uint32(n.VRF))
	return []row{{tableTunnelNet, prioNormal, of.NewMatch().TunID(uint64(n.VNI)), applyGoto(a, p.to(p.forward))}}
}

// DropForeign is the reason of drops of tunnelled packets from no host of the cluster.
const DropForeign = "tunnel"

// Peer returns the flow that lets in what another host sends from its tunnel address;
// nothing where there are no tunnels.
func (p *Pipeline) Peer(vtep netip.Addr) Program {
	if p.set.Encap != VXLAN {
		return Program{}
	}
	return Program{Flows: p.place(tunnels{}, "peer "+vtep.String(), []row{
		{tableTunnel, prioNormal, of.NewMatch().TunSrc(vtep), goTo(p.to(tableTunnelNet))},
	})}
}
