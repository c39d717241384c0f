package ovsd

import (
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// The host's own ports. Flows lead to them, the switch floods nothing there: their
// VLANs are of no network.
const (
	hostPortVXLAN = "contivh0"
	hostPortVLAN  = "contivhv0"

	hostEndpointVXLAN = "hostcontivh0" // values of endpointKey
	hostEndpointVLAN  = "hostcontivhv0"

	hostTagVXLAN = 2
	hostTagVLAN  = 4095 // reserved (IEEE 802.1Q table 9-2)
)

// ContainerLinks names the host's own ports, by which it and containers reach each other.
func ContainerLinks() []string { return []string{hostPortVXLAN, hostPortVLAN} }

// gatewayNetwork is the infra network through which the host reaches the containers of
// all hosts and the services.
const gatewayNetwork = "contivh1"

// hostNumber is the host's in the private subnet, above all ports'.
const hostNumber = 0xfffe

// passNumber is, in the private subnet, that of those for whom the host forwards and who
// cannot be seen as who they are.
const passNumber = 0xfffd

// privatePrefix6 is the first 48 bits of the private subnet for IPv6: a unique local
// prefix (RFC 4193) that is the same on all hosts, as it never leaves them.
var privatePrefix6 = [6]byte{0xfd, 'c', 'o', 'n', 't', 'i'}

// hostAccessOf derives the addresses from the private subnet, a /16. Any other subnet
// gives none.
func hostAccessOf(private netip.Prefix) ofnet.HostAccess {
	if !private.Addr().Is4() || private.Bits() != 16 {
		return ofnet.HostAccess{}
	}
	four, six := privateAddrs(private, hostNumber)
	pass4, pass6 := privateAddrs(private, passNumber)
	b := four.As4()
	prefix6, _ := six.Prefix(64)
	return ofnet.HostAccess{
		MAC: ofnet.MAC{2, 2, b[0], b[1], b[2], b[3]}, Addr4: four, Addr6: six, Subnet4: private.Masked(), Subnet6: prefix6,
		Pass4: pass4, Pass6: pass6,
	}
}

// privateAddrs are the addresses of port n (1 to 0xffff) in the private subnet.
func privateAddrs(private netip.Prefix, n int) (four, six netip.Addr) {
	b := private.Masked().Addr().As4()
	b[2], b[3] = byte(n>>8), byte(n)
	var a [16]byte
	copy(a[:], privatePrefix6[:])
	a[6], a[7], a[14], a[15] = b[0], b[1], b[2], b[3]
	return netip.AddrFrom4(b), netip.AddrFrom16(a)
}

// hostReach is what the driver knows about the way between the host and its containers.
type hostReach struct {
	numbers  map[string]int // number in the port's name by endpoint id
	direct   directTable
	cluster  bool           // also containers of other hosts, and services
	services []netip.Prefix // where they are
	err      error          // why the host lacks a port
}

func newHostReach() hostReach { return hostReach{direct: newDirectTable()} }

// hostAccess is how this host and its containers reach each other.
func (d *Driver) hostAccess() ofnet.HostAccess { return hostAccessOf(d.global.PvtSubnet) }

// hostName and hostEndpoint are the host's port in a side's bridge.
func (s *side) hostName() string {
	if s.encap == ofnet.VLAN {
		return hostPortVLAN
	}
	return hostPortVXLAN
}

func (s *side) hostEndpoint() string {
	if s.encap == ofnet.VLAN {
		return hostEndpointVLAN
	}
	return hostEndpointVXLAN
}

// withHost completes an endpoint of this host with what the host knows it by. The
// caller holds mu.
func (d *Driver) withHost(e ofnet.Endpoint, network drivers.Network) ofnet.Endpoint {
	n := d.reach.numbers[e.ID]
	if access := d.hostAccess(); e.Port != 0 && !network.Infra && n != 0 && access.Addr4.IsValid() {
		e.Private4, e.Private6 = privateAddrs(access.Subnet4, n)
		e.OwnsIPv4, e.OwnsIPv6 = d.reach.direct.is(e.ID, e.IPv4), d.reach.direct.is(e.ID, e.IPv6)
	}
	return e
}

// reachable notes which addresses of an endpoint the host may mean, and renews the
// flows of others that concerns. The caller holds mu.
func (d *Driver) reachable(id string) {
	e := d.endpoints[id]
	var c claimant
	if e.Local && d.ports[id] != 0 && !e.Network.Infra {
		c = claimant{tenant: e.Network.Tenant, addrs: [2]netip.Addr{e.IPv4, e.IPv6}}
	}
	for _, other := range d.reach.direct.put(id, c) {
		if other != id {
			d.refreshEndpoint(other)
		}
	}
	d.host.Kick()
}

// refreshHostPort renews the flows of the host's port in a bridge. The caller holds mu.
func (d *Driver) refreshHostPort(s *side) {
	port := d.ports[s.hostEndpoint()]
	if !d.started || s.pipeline == nil || port == 0 {
		s.sw.Remove("host")
		return
	}
	s.sw.Set("host", s.pipeline.Program(ofnet.HostPort{Port: port, Infra: d.infraAddrs()}))
}

// refreshHostPorts does so in all bridges.
func (d *Driver) refreshHostPorts() {
	for _, s := range d.sides {
		d.refreshHostPort(s)
	}
}

// infraAddrs are the host's own addresses in infra networks, in order. The caller holds mu.
func (d *Driver) infraAddrs() (addrs []netip.Addr) {
	for _, port := range d.wantedHostPorts() {
		if e, ok := d.endpoints[port.endpoint]; ok {
			addrs = append(addrs, announced(e)...)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}
