package compiler

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/ofnet"
)

// Endpoint ids of the host's own ports.
const (
	HostEndpointVXLAN = "hostcontivh0"
	HostEndpointVLAN  = "hostcontivhv0"
)

// HostEndpoint is the id of the host's port in a bridge.
func HostEndpoint(e ofnet.Encap) string {
	if e == ofnet.VLAN {
		return HostEndpointVLAN
	}
	return HostEndpointVXLAN
}

// hostNumber is the host's number in the private subnet, above those of all ports.
const hostNumber = 0xfffe

// passNumber is the number in the private subnet of clients that the host forwards for and
// whose own addresses cannot be used.
const passNumber = 0xfffd

// privatePrefix6 is the first 48 bits of the private subnet for IPv6: a unique local
// prefix (RFC 4193) that is the same on all hosts, as it never leaves them.
var privatePrefix6 = [6]byte{0xfd, 'c', 'o', 'n', 't', 'i'}

// HostAccess is how this host and its containers reach each other.
func (c *Compiler) HostAccess() ofnet.HostAccess { return hostAccessOf(c.Global.PvtSubnet) }

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

// snatPrefix6, followed by the host's IPv4 address, is its node SNAT address for IPv6 if it
// has no other one. It is next to the private subnets: their fourth group is that of an
// IPv4 prefix, which is never 255.255.
var snatPrefix6 = [8]byte{0xfd, 'c', 'o', 'n', 't', 'i', 0xff, 0xff}

// nodeSNAT returns a host's node SNAT addresses, derived from the addresses it has.
func nodeSNAT(own ...netip.Addr) (four, six netip.Addr) {
	for _, a := range own {
		switch a = a.Unmap(); {
		case a.Is4() && !four.IsValid():
			four = a
		case a.Is6() && !six.IsValid():
			six = a
		}
	}
	if four.IsValid() && !six.IsValid() {
		var b [16]byte
		copy(b[:], snatPrefix6[:])
		copy(b[12:], four.AsSlice())
		six = netip.AddrFrom16(b)
	}
	return four, six
}

// withNodeSNAT adds what is needed to reach containers over tunnels.
func (c *Compiler) withNodeSNAT(h ofnet.HostAccess) ofnet.HostAccess {
	if c.Cluster != nil && c.cfg.VTEP.IsValid() && h.Addr4.IsValid() {
		// Network policies identify a host by the address that the cluster has for it.
		h.NodeSNAT4, h.NodeSNAT6 = nodeSNAT(c.cfg.CtrlIP, c.cfg.VTEP)
		h.Tunnel6 = c.cfg.VTEP.Unmap().Is6()
	}
	return h
}

// OwnsSubnets reports whether the host's own routes to these subnets mean this network:
// tenants may use the same ones. Of networks that overlap, the first one owns them, in the
// order of before.
func (c *Compiler) OwnsSubnets(n drivers.Network) bool {
	for _, o := range c.Networks {
		if o.ID != n.ID && o.Encap == ofnet.VXLAN && overlap(o, n) && before(o.Tenant, o.ID, n.Tenant, n.ID) {
			return false
		}
	}
	return true
}

func overlap(a, b drivers.Network) bool {
	return overlapping(a.Subnet4, b.Subnet4) || overlapping(a.Subnet6, b.Subnet6)
}

func overlapping(a, b netip.Prefix) bool { return a.IsValid() && b.IsValid() && a.Overlaps(b) }

// InfraPort is the port of an endpoint of this host in an infra network: an interface of
// the host itself, named like the network.
type InfraPort struct {
	Name     string
	Endpoint drivers.Endpoint
	Number   int // offset of the requested OpenFlow port, below InfraPorts
}

// InfraPorts is the number of OpenFlow ports reserved for infra networks.
const InfraPorts = 200

// InfraPorts lists them by name. If two networks have the same name, that of the first
// tenant gets the port.
func (c *Compiler) InfraPorts() (out []InfraPort) {
	taken := map[string]bool{"contivh0": true, "contivhv0": true}
	for _, id := range c.infraIDs() {
		e := c.Endpoints[id]
		if taken[e.Network.Name] {
			continue
		}
		taken[e.Network.Name] = true
		h := fnv.New32a()
		_, _ = h.Write([]byte(e.Network.Name))
		out = append(out, InfraPort{e.Network.Name, e, int(h.Sum32() % InfraPorts)})
	}
	return out
}

func (c *Compiler) infraIDs() []string { return slices.Sorted(maps.Keys(c.infra)) }

// InfraAddrs are the host's own addresses in infra networks, sorted.
func (c *Compiler) InfraAddrs() (addrs []netip.Addr) {
	for _, p := range c.InfraPorts() {
		addrs = append(addrs, AddrsOf(p.Endpoint)...)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// AddrsOf lists the addresses of an endpoint.
func AddrsOf(e drivers.Endpoint) (addrs []netip.Addr) {
	for _, a := range []netip.Addr{e.IPv4, e.IPv6} {
		if a.IsValid() {
			addrs = append(addrs, a)
		}
	}
	return addrs
}
