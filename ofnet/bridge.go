package ofnet

import (
	"net/netip"
	"slices"

	of "github.com/contiv/netplugin/libopenflow"
)

// Flood is where a network's broadcasts go: the ports of its endpoints on this host, and
// the tunnel addresses of the other hosts with endpoints in it. It depends on all endpoints
// of the network, so it is an object of its own.
type Flood struct {
	Network Network
	Ports   []uint32
	VTEPs   []netip.Addr
}

// macTable forwards inside a network by the MAC addresses of its endpoints. All of them are
// known, so nothing is learned. Broadcasts, multicasts and unknown addresses are flooded.
type macTable struct{}

func (macTable) id() uint8       { return featureSwitch }
func (macTable) tables() []table { return []table{tableMAC} }

func (f macTable) part(p *Pipeline, o Object) part {
	switch o := o.(type) {
	case Endpoint:
		return part{rows: f.endpoint(p, o)}
	case Flood:
		rows, groups := f.flood(p, o)
		return part{rows: rows, groups: groups}
	}
	return part{}
}

func (macTable) endpoint(p *Pipeline, e Endpoint) []row {
	m := of.NewMatch().With(regSegment.is(e.Segment())).EthDst(e.MAC)
	if e.Local() {
		return []row{{tableMAC, prioNormal, m, e.QoS.received(e).Apply(of.NewActions().Output(e.Port))}}
	}
	// A frame from a tunnel never goes into a tunnel (split horizon): it would loop
	// while hosts disagree about where an endpoint is.
	return []row{{tableMAC, prioNormal, m.With(regOrigin.is(originLocal)), p.tunnel(e)}}
}

// tunnel sends to the host of a remote endpoint. Endpoints of one network on one host share
// one value.
func (p *Pipeline) tunnel(e Endpoint) of.Instructions {
	key := tunnelKey{vtep: e.VTEP, vni: e.VNI}
	do, ok := p.tunnels[key]
	if !ok {
		do = apply(toVTEP(of.NewActions().SetTunID(uint64(e.VNI)), e.VTEP).Output(p.set.TunnelPort))
		p.tunnels[key] = do
	}
	return do
}

// toVTEP sets the remote address of the tunnel.
func toVTEP(a of.Actions, vtep netip.Addr) of.Actions {
	if vtep.Is6() {
		return a.SetField(of.FieldTunIPv6Dst.IsAddr(vtep))
	}
	return a.SetField(of.FieldTunDst.IsAddr(vtep))
}

// Flood groups are numbered VNI
//
// scope
//
// part: 24, 1 and 5 bits. A part has as many buckets as fit into a message of 64 KiB.
const (
	floodAll, floodLocal = 0, 1

	floodPartBits  = 5
	floodScopeBits = 1
	floodPart      = 1000
	maxFloodParts  = 1 << floodPartBits
)

func floodID(vni uint32, scope, part int) uint32 {
	return vni<<(floodScopeBits+floodPartBits) | uint32(scope<<floodPartBits|part)
}

func (macTable) flood(p *Pipeline, f Flood) (rows []row, groups []of.Group) {
	if len(f.Ports) == 0 {
		return nil, nil // no endpoint here to flood from or to
	}
	var buckets []of.Actions
	for _, port := range f.Ports {
		buckets = append(buckets, of.NewActions().Output(port))
	}
	local := len(buckets)
	for _, vtep := range f.VTEPs {
		buckets = append(buckets, toVTEP(of.NewActions(), vtep).Output(p.set.TunnelPort))
	}
	vni := f.Network.VNI
	add := func(scope int, origin uint32, a of.Actions, buckets []of.Actions) {
		part := 0
		for chunk := range slices.Chunk(buckets, floodPart) {
			if part == maxFloodParts {
				break
			}
			g := of.Group{ID: floodID(vni, scope, part), Type: of.GroupTypeAll}
			for _, b := range chunk {
				g.Buckets = g.Buckets.Add(b)
			}
			groups = append(groups, g)
			a = a.Group(g.ID)
			part++
		}
		m := of.NewMatch().With(regOrigin.is(origin)).With(regSegment.is(f.Network.Segment()))
		rows = append(rows, row{tableMAC, prioFlood, m, apply(a)})
	}
	add(floodAll, originLocal, of.NewActions().SetTunID(uint64(vni)), buckets)
	add(floodLocal, originTunnel, of.NewActions(), buckets[:local])
	return rows, groups
}
