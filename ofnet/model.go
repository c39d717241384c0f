package ofnet

import (
	"net/netip"

	of "github.com/contiv/netplugin/libopenflow"
	"github.com/contiv/netplugin/utils/netspec"
)

// MAC is a comparable Ethernet address.
type MAC = of.MAC

// RouterMAC is the MAC address of the router of every network on every host, so that a
// container can move without noticing.
var RouterMAC = MAC{0x00, 0x00, 0x11, 0x11, 0x11, 0x11}

// LinkRouter4 and LinkRouter6 are router addresses on every link of a routed network, so
// that containers of a network without gateway have a next hop.
var (
	LinkRouter4 = netip.MustParseAddr("169.254.1.1")
	LinkRouter6 = netip.MustParseAddr("fe80::1")
)

// Encap is how frames of a network travel between hosts.
type Encap uint8

// The encapsulations. Each has a bridge of its own.
const (
	VLAN Encap = iota + 1
	VXLAN
)

func (e Encap) String() string {
	switch e {
	case VLAN:
		return "vlan"
	case VXLAN:
		return "vxlan"
	}
	return "none"
}

// Network is a network for the pipeline.
type Network struct {
	ID       string
	Encap    Encap
	VRF      uint16 // 1–65535; local to the host
	Tag      uint16 // VLAN 1–4094; within a host only if Encap is VXLAN
	VNI      uint32 // 24 bits; 0 for VLAN
	Gateway4 netip.Addr
	Gateway6 netip.Addr
	Subnet4  netip.Prefix
	Subnet6  netip.Prefix
	netspec.Settings
	// OwnsAddresses says that the host's own packets to the addresses of its subnets
	// belong to this network. Several tenants may use the same addresses; only one of
	// them owns them.
	OwnsAddresses bool
}

// Segment is the network's number inside one bridge: the VNI, or the VLAN.
func (n Network) Segment() uint32 { return segment(n.Encap, n.VNI, n.Tag) }

// Endpoint is one attachment of a container, on this host or another one.
type Endpoint struct {
	ID    string
	Encap Encap
	VRF   uint16
	Tag   uint16 // of its network
	VNI   uint32 // of its network
	Group uint32 // 0 = none
	// Policed says that the VRF has rules, which need to know the group.
	Policed bool
	MAC     MAC
	IPv4    netip.Addr // zero when it has none
	IPv6    netip.Addr

	QoS QoS // for what an endpoint of this host sends

	// Port is the OpenFlow port of an endpoint of this host; zero for a remote one.
	Port uint32
	// Private4 and Private6 represent an endpoint of this host outside of its VRF, where
	// its own address may not be unique. Zero: none.
	Private4, Private6 netip.Addr
	// OwnsIPv4 and OwnsIPv6 say that the host reaches this endpoint at that address,
	// which endpoints of other tenants may have as well.
	OwnsIPv4, OwnsIPv6 bool
	// VTEP is the tunnel address of the host of a remote endpoint.
	VTEP netip.Addr
}

// QoS limits what a container sends and receives, with the same rate in each direction, and
// marks what it sends. The zero value does neither.
type QoS struct {
	Rate  uint32 // kbit/s; 0 = no limit
	Burst uint32 // kbit above it; at least 250 ms of Rate
	DSCP  uint8  // 0–63 (RFC 2474); 0 keeps the container's own value
}

// Segment is the number of the endpoint's network inside one bridge.
func (e Endpoint) Segment() uint32 { return segment(e.Encap, e.VNI, e.Tag) }

// Local reports whether the endpoint is on this host.
func (e Endpoint) Local() bool { return e.Port != 0 }

func segment(encap Encap, vni uint32, tag uint16) uint32 {
	if encap == VXLAN {
		return vni
	}
	return uint32(tag)
}

// Uplink is a port of the VLAN bridge that leads to the physical network.
type Uplink struct {
	Name string
	Port uint32
	Down bool // without link: flows do not use it where they have a choice
}

// ParseMAC reads the colon-separated form of an Ethernet address.
func ParseMAC(s string) (MAC, error) { return of.ParseMAC(s) }
