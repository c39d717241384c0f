// Package netx answers questions about this host's own network: which address it is
// known by, and whether a text is an address someone can listen on.
package netx

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/utils/errs"
)

// notTheHost are name prefixes of interfaces that carry containers' or Contiv's own
// addresses, never the address a host is known by.
var notTheHost = []string{"lo", "docker", "veth", "vport", "vvport", "contiv", "cni", "kube-ipvs"}

// Address is an IPv4 address of an interface.
type Address struct {
	Interface string
	Addr      netip.Addr
}

// DefaultHostIP returns the IPv4 address this host is known by when nobody says
// otherwise: the first of the host name's addresses that is configured here, else
// the source address of the default route, else the first address of an interface
// that is neither loopback nor made for containers. NotFound when there is none.
func DefaultHostIP(ctx context.Context) (netip.Addr, error) {
	local, err := LocalAddresses()
	if err != nil {
		return netip.Addr{}, err
	}
	var named []netip.Addr
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		// A host name that does not resolve is common and no reason to fail.
		if addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name); err == nil {
			named = addrs
		}
	}
	return choose(named, defaultRouteSources(), local)
}

// LocalAddresses lists this host's IPv4 addresses in the order of its interfaces.
func LocalAddresses() ([]Address, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	slices.SortFunc(ifs, func(a, b net.Interface) int { return cmp.Compare(a.Index, b.Index) })
	var out []Address
	for _, i := range ifs {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("list addresses of interface %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				out = append(out, Address{Interface: i.Name, Addr: p.Addr()})
			}
		}
	}
	return out, nil
}

// choose is DefaultHostIP without a host.
func choose(named, routed []netip.Addr, local []Address) (netip.Addr, error) {
	usable := slices.DeleteFunc(slices.Clone(local), func(a Address) bool {
		return a.Addr.IsLoopback() || a.Addr.IsUnspecified() ||
			slices.ContainsFunc(notTheHost, func(p string) bool { return strings.HasPrefix(a.Interface, p) })
	})
	for _, candidates := range [][]netip.Addr{named, routed} {
		for _, w := range candidates {
			if slices.ContainsFunc(usable, func(a Address) bool { return a.Addr == w.Unmap() }) {
				return w.Unmap(), nil
			}
		}
	}
	if len(usable) > 0 {
		return usable[0].Addr, nil
	}
	return netip.Addr{}, errs.New(errs.NotFound, "no interface of this host has a usable IPv4 address")
}

// defaultRouteSources lists the addresses of the default routes' interfaces, the
// preferred source first, lowest metric first. No default route is no error.
func defaultRouteSources() []netip.Addr {
	routes, err := netlinksafe.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil
	}
	routes = slices.DeleteFunc(routes, func(r netlink.Route) bool {
		if r.Dst == nil {
			return false
		}
		ones, _ := r.Dst.Mask.Size()
		return ones != 0
	})
	slices.SortStableFunc(routes, func(a, b netlink.Route) int { return cmp.Compare(a.Priority, b.Priority) })
	var out []netip.Addr
	for _, r := range routes {
		if a, ok := netip.AddrFromSlice(r.Src); ok {
			out = append(out, a.Unmap())
		}
		link, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			continue
		}
		addrs, err := netlinksafe.AddrList(link, netlink.FAMILY_V4)
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if ip, ok := netip.AddrFromSlice(a.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out
}

// ParseListen checks the text of an address to listen on, "host:port" with a port of
// 1 to 65535 and a host that is an IP address or empty (all addresses). The error
// does not name the option the text came from.
func ParseListen(text string) (netip.AddrPort, error) {
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, errs.New(errs.Invalid, "%q is not host:port", text)
	}
	if host == "" {
		text = "0.0.0.0" + text
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}, errs.New(errs.Invalid, "%q is not an IP address and a port of 1 to 65535", text)
	}
	if ap.Port() == 0 {
		return netip.AddrPort{}, errs.New(errs.Invalid, "%q has port 0, expected 1 to 65535", text)
	}
	return ap, nil
}

// CheckListen checks the text of an address to listen on whose host may also be a name.
func CheckListen(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return errs.New(errs.Invalid, "%q is not host:port", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errs.New(errs.Invalid, "%q has port %q, expected 1 to 65535", text, port)
	}
	return nil
}
