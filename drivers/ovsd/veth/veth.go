// Package veth makes the pairs of interfaces that connect containers.
package veth

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/errs"
)

// Make creates the pair for a container: the switch's end in this namespace, up, and the
// container's end under name in the namespace of path netns, or here if that is empty. The
// end is created in its final namespace: moving an interface between namespaces takes the
// kernel several RCU grace periods, some 15 ms.
func Make(ovsName, netns, name string, mtu int) error {
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
			if errors.Is(err, unix.EEXIST) && Exists(name) {
				return errs.New(errs.Exists, "the container already has an interface %s", name)
			}
			return fmt.Errorf("create the veth pair %s/%s: %w", ovsName, name, err)
		}
		// The userspace datapath reads frames before an offload has filled in the
		// checksum; the kernel's datapath does not mind.
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
		_ = Remove(ovsName)
		return fmt.Errorf("bring %s up: %w", ovsName, err)
	}
	return nil
}

// muteHost stops the host's own stack from talking to the container over the switch's end
// of its pair: the userspace datapath works on copies of the frames, so the host's stack
// sees them too and would answer ARP and neighbor discovery, bypassing all flows.
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

// Remove deletes a link of this namespace. A link that does not exist is not an error.
func Remove(name string) error {
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

// Exists reports whether there is a link of that name.
func Exists(name string) bool {
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
