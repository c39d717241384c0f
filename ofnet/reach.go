package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
)

// ControlPlane is what containers must not reach outside the overlay.
type ControlPlane struct {
	Addrs []netip.Addr // of the cluster's hosts
	Ports []PortRange  // at these addresses
	// Tunnels are the UDP ports of tunnels, blocked at any outside address: datagrams of
	// a container arrive there with its host's address and would be accepted as frames
	// of a network.
	Tunnels []uint16
}

// reach drops packets from containers to the control plane where they reach other hosts
// without passing their own host's stack: in VLANs. There, hosts are recognized by address
// only, as they may be in the same network.
//
// Packets that pass the host's own stack are filtered there, except those to tunnel ports.
type reach struct {
	links bool // containers are on the same links as the hosts
}

const reachConjunction = 1

func (reach) id() uint8 { return featureReach }

func (f reach) tables() []table {
	if f.links {
		return []table{tableReach}
	}
	return nil
}

func (f reach) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case ControlPlane:
		return part{rows: f.controlPlane(p, o)}
	case Base:
		if f.links {
			return part{rows: []row{{tableReach, prioMiss, of.NewMatch(), goTo(p.next(tableReach))}}}
		}
	case Network:
		if f.links && !p.set.Routing {
			return part{rows: f.network(p, o)}
		}
	}
	return part{}
}

// network allows containers of a bridged network to use tunnels among themselves.
func (reach) network(p *Pipeline, n Network) []row {
	var rows []row
	for _, s := range []netip.Prefix{n.Subnet4, n.Subnet6} {
		if s.IsValid() {
			m := of.NewMatch().With(regOrigin.is(originLocal)).With(regSegment.is(n.Segment())).IPProto(of.ProtoUDP).Dst(s)
			rows = append(rows, row{tableReach, prioSpecific, m, goTo(p.next(tableReach))})
		}
	}
	return rows
}

func (f reach) controlPlane(p *Pipeline, c ControlPlane) []row {
	local := of.NewMatch().With(regOrigin.is(originLocal))
	var rows []row
	if p.set.Host.enabled() {
		rows = append(rows, p.tunnelPorts(tableHostEmit, prioDrop, local, c.Tunnels)...)
	}
	if f.links {
		rows = append(rows, p.tunnelPorts(tableReach, prioNormal, local, c.Tunnels)...)
		rows = append(rows, c.conjunction(p, local)...)
	}
	return distinct(rows)
}

func (p *Pipeline) tunnelPorts(t table, priority uint16, m of.Match, ports []uint16) []row {
	var rows []row
	for _, port := range ports {
		for _, family := range []of.Match{m.IP(), m.IPv6()} {
			rows = append(rows, row{t, priority, family.IPProto(of.ProtoUDP).UDPDst(port), p.deny(DeniedByReach)})
		}
	}
	return rows
}

// conjunction drops packets to one of the ports at one of the addresses.
func (c ControlPlane) conjunction(p *Pipeline, local of.Match) []row {
	if len(c.Addrs) == 0 || len(c.Ports) == 0 {
		return nil
	}
	rows := []row{{tableReach, prioDrop, local.ConjID(reachConjunction), p.deny(DeniedByReach)}}
	for _, a := range c.Addrs {
		rows = append(rows, row{tableReach, prioDrop, local.Dst(host(a)), apply(of.NewActions().Conjunction(reachConjunction, 0, 2))})
	}
	for _, r := range c.Ports {
		_, dst := portFields(r.Proto)
		for _, family := range []of.Match{local.IP(), local.IPv6()} {
			for _, port := range r.masked() {
				rows = append(rows, row{tableReach, prioDrop, port.narrow(family.IPProto(r.Proto), dst), apply(of.NewActions().Conjunction(reachConjunction, 1, 2))})
			}
		}
	}
	return rows
}
