package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// What the host begins with containers of other hosts. This host gives it an address of
// its own among hosts, and marks the frame by its source; the container's host notes with
// the connection which tunnel it came by, and sends the answers back there. So no host
// needs to know another one for it, and what containers themselves send to such an
// address goes where everything for outside goes.
//
//	here       host-in       source := Far, by a zone of the VRF; then as containers' packets
//	there      tunnel-net    the connection and its tunnel are noted in that zone
//	           host-emit     what answers such a connection goes back into the tunnel
//	here       tunnel-net    translated back, to the host

// fromHostMark is the mark, in the zone of a VRF's translations, of connections from other
// hosts; the label is the tunnel address of that host.
const fromHostMark = 1

// snat returns the node SNAT addresses of this host.
func (h HostAccess) snat() []netip.Addr { return []netip.Addr{h.NodeSNAT4, h.NodeSNAT6} }

// otherHost returns the fields with the other host's tunnel address in received and sent
// packets, and the part of the label that stores it.
func (h HostAccess) otherHost() (src, dst, label of.Subfield) {
	if h.Tunnel6 {
		return of.FieldTunIPv6Src.All(), of.FieldTunIPv6Dst.All(), of.FieldCTLabel.Range(0, 127)
	}
	return of.FieldTunSrc.All(), of.FieldTunDst.All(), of.FieldCTLabel.Range(0, 31)
}

func (f hostAccess) nodeSNAT(p *Pipeline) bool {
	return f.world && (p.set.Host.NodeSNAT4.IsValid() || p.set.Host.NodeSNAT6.IsValid())
}

// snatBase: the host's own packets bypass policy here, and so do the replies.
func (f hostAccess) snatBase(p *Pipeline) []row {
	if !f.nodeSNAT(p) {
		return nil
	}
	_, remote, label := p.set.Host.otherHost()
	rows := []row{{tableTrack, prioDrop, of.NewMatch().With(regOrigin.is(originHost)), p.gotoStage(stageOutput)}}
	back := apply(of.NewActions().SetEthSrc(RouterMAC).SetEthDst(p.set.Host.MAC).
		Move(regSegment.all(), of.FieldTunID.Range(0, 31)).Move(label, remote).Output(p.set.TunnelPort))
	for _, bits := range []uint32{trackedReply, trackedRelated} {
		for _, family := range families {
			m := family.CTState(bits, bits).With(of.FieldCTMark.Is(fromHostMark)).With(regOrigin.is(originLocal))
			rows = append(rows, row{tableHostEmit, prioSpecific, m, back})
		}
	}
	return rows
}

// snatNetwork: a network that owns its addresses on this host.
func (f hostAccess) snatNetwork(p *Pipeline, n Network) []row {
	if !f.nodeSNAT(p) || n.Encap != VXLAN {
		return nil
	}
	h := p.set.Host
	remote, _, label := h.otherHost()
	zone := hostZone(n.VRF)
	var rows []row
	for i, subnet := range []netip.Prefix{n.Subnet4, n.Subnet6} {
		if far := h.snat()[i]; n.OwnsAddresses && subnet.IsValid() && far.IsValid() {
			// There, policy applies to this host's address, whoever has sent the
			// packet.
			out := func(nat of.NAT) of.Instructions {
				return apply(of.NewActions().SetField(regOrigin.is(originHost)).SetField(regVRF.is(uint32(n.VRF))).CT(of.CT{Commit: true, Zone: zone, NAT: nat, Recirc: true, Table: p.to(tableRoute)}))
			}
			to := of.NewMatch().Dst(subnet)
			rows = append(rows, row{tableHostIn, prioGeneral, to, out(of.NAT{Kind: of.NATSource, Min: far})})
			// Packets that the host sends from that very address need at most another
			// port, and always get one: others may use the same (see service).
			rows = append(rows, row{tableHostIn, prioGeneral + 1, to.Src(host(far)), out(of.NAT{})})
			for _, proto := range protocols() {
				for _, half := range otherPorts(proto) {
					rows = append(rows, row{
						tableHostIn, prioGeneral + 2, to.IPProto(proto).Src(host(far)).With(half.from),
						out(of.NAT{Kind: of.NATSource, Min: far, MinPort: half.min, MaxPort: half.max}),
					})
				}
			}
		}
	}
	tunnel := of.NewMatch().TunID(uint64(n.VNI))
	in := of.NewActions().SetField(regOrigin.is(originTunnel)).SetField(regSegment.is(n.VNI)).SetField(regVRF.is(uint32(n.VRF))).CT(of.CT{
		Commit: true, Zone: zone, Exec: of.NewActions().SetField(of.FieldCTMark.Is(fromHostMark)).Move(remote, label),
	})
	back := of.NewActions().SetField(regOrigin.is(originTunnel)).CT(of.CT{
		Zone: zone, NAT: of.NAT{Kind: of.NATExisting}, Recirc: true, Table: p.to(tableHostEmit),
	})
	mac := h.MAC
	for _, family := range []func(of.Match) of.Match{of.Match.IP, of.Match.IPv6} {
		rows = append(rows,
			row{tableTunnelNet, prioSpecific, family(tunnel.With(of.FieldEthSrc.IsMAC(mac))), applyGoto(in, p.to(p.first(stageForward)))},
			row{tableTunnelNet, prioSpecific + 1, family(tunnel.With(of.FieldEthDst.IsMAC(mac))), apply(back)})
	}
	return rows
}
