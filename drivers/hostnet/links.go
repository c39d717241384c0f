package hostnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"
)

// applyLink gives a link what it is to have, writing only differences.
func applyLink(want Link, sys sysctls) (netlink.Link, error) {
	link, err := netlinksafe.LinkByName(want.Name)
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", want.Name, err)
	}
	a := link.Attrs()
	failed := func(what string, err error) error { return fmt.Errorf("link %s: %s: %w", want.Name, what, err) }
	if [6]byte(slices.Concat(a.HardwareAddr, make([]byte, 6))[:6]) != want.MAC {
		if err := netlink.LinkSetHardwareAddr(link, want.MAC[:]); err != nil {
			return nil, failed("set its address", err)
		}
	}
	if want.MTU > 0 && a.MTU != want.MTU {
		if err := netlink.LinkSetMTU(link, want.MTU); err != nil {
			return nil, failed(fmt.Sprintf("set its MTU to %d", want.MTU), err)
		}
	}
	if want.NoARP != (a.RawFlags&unix.IFF_NOARP != 0) {
		set := netlink.LinkSetARPOn
		if want.NoARP {
			set = netlink.LinkSetARPOff
		}
		if err := set(link); err != nil {
			return nil, failed("switch ARP", err)
		}
	}
	if err := sys.forLink(want.Name); err != nil {
		return nil, failed("set it up", err)
	}
	if a.Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(link); err != nil {
			return nil, failed("bring it up", err)
		}
	}
	return link, applyAddrs(link, want.Addrs)
}

// applyAddrs makes a link's addresses exactly those wanted; IPv6 link-local ones are
// the kernel's.
func applyAddrs(link netlink.Link, want []netip.Prefix) error {
	name := link.Attrs().Name
	have, err := netlinksafe.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("link %s: list its addresses: %w", name, err)
	}
	there := map[netip.Prefix]bool{}
	for _, a := range have {
		p, ok := asPrefix(a.IPNet)
		if !ok || p.Addr().IsLinkLocalUnicast() {
			continue
		}
		if slices.Contains(want, p) {
			there[p] = true
			continue
		}
		if err := netlink.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("link %s: remove the address %s: %w", name, p, err)
		}
	}
	for _, p := range want {
		if there[p] {
			continue
		}
		a := &netlink.Addr{IPNet: netipx.PrefixIPNet(p)}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD // it is ours by construction
		}
		if err := netlink.AddrAdd(link, a); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("link %s: give it the address %s: %w", name, p, err)
		}
	}
	return nil
}

func asPrefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	return netipx.FromStdIPNet(n)
}
