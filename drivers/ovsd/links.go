package ovsd

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/errs"
)

// makeVeth creates the pair a container is attached with: the switch's end in this
// namespace, up, and the container's end under name in the namespace of path netns, or
// here when that is empty. The end is made where it is to be: moving an interface
// between namespaces takes the kernel several RCU grace periods, some 15 ms.
func makeVeth(ovsName, netns, name string, mtu int) error {
	host, err := ns.GetCurrentNS()
	if err != nil {
		return err
	}
	defer host.Close()
	create := func(ns.NetNS) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = name, mtu
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: ovsName, PeerNamespace: netlink.NsFd(int(host.Fd()))}
		if err := netlink.LinkAdd(veth); err != nil {
			if errors.Is(err, unix.EEXIST) && linkExists(name) {
				return errs.New(errs.Exists, "the container already has an interface %s", name)
			}
			return fmt.Errorf("create the veth pair %s/%s: %w", ovsName, name, err)
		}
		// The userspace datapath reads frames as they leave the container, before any
		// offload would have filled in the checksum; the kernel's does not mind.
		if err := txChecksumOff(name); err != nil {
			_ = netlink.LinkDel(veth)
			return fmt.Errorf("turn transmit checksum offload of %s off: %w", name, err)
		}
		return nil
	}
	if netns == "" {
		err = create(nil)
	} else {
		err = ns.WithNetNSPath(netns, create)
	}
	if err != nil {
		return err
	}
	end, err := netlinksafe.LinkByName(ovsName)
	if err == nil {
		err = muteHost(end)
	}
	if err == nil {
		err = netlink.LinkSetUp(end)
	}
	if err != nil {
		_ = removeLink(ovsName)
		return fmt.Errorf("bring %s up: %w", ovsName, err)
	}
	return nil
}

// muteHost keeps the host itself from talking to the container over the switch's end of
// its pair: the userspace datapath gets copies of the frames, the host's stack sees them
// too, and would answer ARP and neighbour discovery past all flows.
func muteHost(end netlink.Link) error {
	if err := netlink.LinkSetARPOff(end); err != nil {
		return err
	}
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+end.Attrs().Name+"/disable_ipv6", []byte("1"), 0o644)
	if errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return nil
	}
	return err
}

// removeLink deletes a link of this namespace; one that is gone is no error.
func removeLink(name string) error {
	link, err := netlinksafe.LinkByName(name)
	if err != nil {
		var missing netlink.LinkNotFoundError
		if errors.As(err, &missing) {
			return nil
		}
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the link %s: %w", name, err)
	}
	return nil
}

func linkExists(name string) bool {
	_, err := netlinksafe.LinkByName(name)
	return err == nil
}

// txChecksumOff is ethtool's "tx off": command ETHTOOL_STXCSUM of SIOCETHTOOL.
func txChecksumOff(name string) error {
	const ethtoolSTXCSUM = 0x17
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := struct{ cmd, data uint32 }{ethtoolSTXCSUM, 0}
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // rest of the ifr_ifru union
	}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	req.data = unsafe.Pointer(&value)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

// Overhead of VXLAN in bytes: outer IP, UDP 8, VXLAN 8, inner Ethernet 14 (RFC 7348).
const (
	vxlanOverhead4 = 20 + 8 + 8 + 14
	vxlanOverhead6 = 40 + 8 + 8 + 14
)

// TunnelMTU is what fits through the tunnel: the MTU of the interface that holds the
// VTEP address less the overhead. An address that is nowhere configured (a host behind
// NAT) counts as a plain 1500-byte link.
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

// kernelDatapath reports whether the kernel has Open vSwitch; asking loads the module
// where there is one.
func kernelDatapath() bool {
	_, err := netlink.GenlFamilyGet("ovs_datapath")
	return err == nil
}
