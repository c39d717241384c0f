package ofnet

import (
	"fmt"
	"net/netip"
)

// Object is something that needs flows: one of the types of this package that have a label.
type Object interface {
	// label is the object's name among those of its kind. It is hashed into the cookies
	// of the object's flows: another label means other cookies, and all flows are sent
	// again.
	label() string
}

// Base stands for the flows that a bridge needs whatever objects there are.
type Base struct{}

// GroupVLAN is the VLAN of a group in a network, used instead of the network's own.
type GroupVLAN struct {
	Network Network
	Tag     uint16
}

// OwnNode is the host of endpoints with policies: they can always connect to each other.
type OwnNode struct {
	Endpoints []Endpoint   // that are the host's own
	Addrs     []netip.Addr // of the host
}

// HostPort is the port with which the host itself reaches containers.
type HostPort struct {
	Port  uint32
	Infra []netip.Addr // the host's own addresses in infra networks, from which it replies too
}

// Peer is another host of the cluster, identified by the source address of its tunneled
// packets.
type Peer struct{ VTEP netip.Addr }

func (Base) label() string             { return "fixed" }
func (n Network) label() string        { return n.ID }
func (e Endpoint) label() string       { return e.ID }
func (g GroupVLAN) label() string      { return fmt.Sprint("vlan ", g.Tag) }
func (u Uplink) label() string         { return u.Name }
func (f Flood) label() string          { return f.Network.ID }
func (v VRFPolicy) label() string      { return fmt.Sprint("vrf ", v.VRF) }
func (r Rule) label() string           { return r.ID }
func (e EndpointPolicy) label() string { return e.Endpoint.ID }
func (s PolicyRuleSet) label() string  { return s.ID }
func (p PolicyPeer) label() string     { return p.ID }
func (OwnNode) label() string          { return "own-node" }
func (s Service) label() string        { return s.ID }
func (HostPort) label() string         { return "host" }
func (p Peer) label() string           { return "peer " + p.VTEP.String() }
func (ControlPlane) label() string     { return "fixed" }
func (RouterPort) label() string       { return "router" }
func (r Route) label() string          { return "route " + r.Prefix.String() }
func (HopSet) label() string           { return "hops" }
