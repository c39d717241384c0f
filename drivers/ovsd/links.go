package ovsd

import (
	"net/netip"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
)

// Overhead of VXLAN in bytes: outer IP, UDP 8, VXLAN 8, inner Ethernet 14 (RFC 7348).
const (
	vxlanOverhead4 = 20 + 8 + 8 + 14
	vxlanOverhead6 = 40 + 8 + 8 + 14
)

// TunnelMTU is the MTU inside the tunnel: that of the interface with the VTEP address less
// the overhead. An address that is not configured on any interface (a host behind NAT)
// counts as a 1500-byte link.
func TunnelMTU(vtep netip.Addr) int {
	overhead := vxlanOverhead4
	if vtep.Is6() && !vtep.Is4In6() {
		overhead = vxlanOverhead6
	}
	if link := linkWithAddr(vtep); link != nil {
		return link.Attrs().MTU - overhead
	}
	return 1500 - overhead
}

// linkMTU is the MTU of the first of the named links that exists, or 1500.
func linkMTU(names []string) int {
	for _, name := range names {
		if link, err := netlinksafe.LinkByName(name); err == nil {
			return link.Attrs().MTU
		}
	}
	return 1500
}

// linkMTUOf is the MTU of a link in bytes, 0 if there is no such link.
func linkMTUOf(name string) int {
	link, err := netlinksafe.LinkByName(name)
	if err != nil {
		return 0
	}
	return link.Attrs().MTU
}

// linkWithAddr finds the link that has an address, or nil.
func linkWithAddr(addr netip.Addr) netlink.Link {
	if !addr.IsValid() {
		return nil
	}
	addrs, err := netlinksafe.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.Unmap() == addr.Unmap() {
			if link, err := netlink.LinkByIndex(a.LinkIndex); err == nil {
				return link
			}
		}
	}
	return nil
}

// kernelDatapath reports whether the kernel has Open vSwitch. Asking loads the module if it
// exists.
func kernelDatapath() bool {
	_, err := netlink.GenlFamilyGet("ovs_datapath")
	return err == nil
}
