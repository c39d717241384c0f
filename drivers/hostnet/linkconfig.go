package hostnet

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/errs"
)

// LinkConfig is the host's configuration of one of its links: the link's addresses and the
// routes over it. It can be stored, and be moved to another link and back.
type LinkConfig struct {
	Link    string        `json:"link"` // its name
	MAC     string        `json:"mac"`
	MTU     int           `json:"mtu"`
	Promisc bool          `json:"promisc,omitempty"`
	NoARP   bool          `json:"noARP,omitempty"`
	NoIPv6  string        `json:"noIPv6,omitempty"` // the kernel's disable_ipv6, "" where there is none
	Addrs   []LinkAddress `json:"addrs,omitempty"`
	Routes  []LinkRoute   `json:"routes,omitempty"`
}

// LinkAddress is an address in the order and with the attributes it has on its link.
type LinkAddress struct {
	Prefix    netip.Prefix `json:"prefix"` // with the address, not masked
	Broadcast netip.Addr   `json:"broadcast,omitzero"`
	Label     string       `json:"label,omitempty"`
	Scope     int          `json:"scope,omitempty"`
	Flags     int          `json:"flags,omitempty"`
}

// LinkRoute is a route over a link, in any table but the kernel's own. Dst of a default
// route is 0.0.0.0/0 or ::/0.
type LinkRoute struct {
	Dst      netip.Prefix `json:"dst"`
	Gateway  netip.Addr   `json:"gateway,omitzero"`
	Source   netip.Addr   `json:"source,omitzero"`
	Table    int          `json:"table"`
	Metric   int          `json:"metric,omitempty"`
	Protocol int          `json:"protocol"`
	Scope    int          `json:"scope,omitempty"`
	Type     int          `json:"type"`
	Flags    int          `json:"flags,omitempty"`
	MTU      int          `json:"mtu,omitempty"`
}

// addrFlags are those that are a setting, not a state.
const addrFlags = unix.IFA_F_NODAD | unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_MANAGETEMPADDR

// ReadLinkConfig reads the configuration of a link, without link-local addresses, which every
// link makes for itself.
func ReadLinkConfig(link netlink.Link) (LinkConfig, error) {
	a := link.Attrs()
	b := LinkConfig{Link: a.Name, MAC: a.HardwareAddr.String(), MTU: a.MTU, NoARP: a.RawFlags&unix.IFF_NOARP != 0}
	b.Promisc = a.RawFlags&unix.IFF_PROMISC != 0
	b.NoIPv6, _ = read("net/ipv6/conf/" + a.Name + "/disable_ipv6")
	addrs, err := netlinksafe.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return b, fmt.Errorf("read the addresses of %s: %w", a.Name, err)
	}
	for _, x := range addrs {
		p, ok := asPrefix(x.IPNet)
		if !ok || p.Addr().IsLinkLocalUnicast() && p.Addr().Is6() {
			continue
		}
		l := LinkAddress{Prefix: p, Label: x.Label, Scope: x.Scope, Flags: x.Flags & addrFlags}
		if c, ok := netip.AddrFromSlice(x.Broadcast); ok {
			l.Broadcast = c.Unmap()
		}
		b.Addrs = append(b.Addrs, l)
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlinksafe.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return b, fmt.Errorf("read the routes over %s: %w", a.Name, err)
		}
		for _, r := range routes {
			if slices.ContainsFunc(r.MultiPath, func(h *netlink.NexthopInfo) bool { return h.LinkIndex == a.Index }) {
				return b, errs.New(errs.Invalid, "the route to %s goes by %s and by other links at once: it cannot be moved; make it a route by one link", r.Dst, a.Name)
			}
			if r.LinkIndex != a.Index || r.Table == unix.RT_TABLE_LOCAL {
				continue
			}
			if l, ok := linkRoute(r, family); ok {
				b.Routes = append(b.Routes, l)
			}
		}
	}
	// A gateway must be reachable before there are routes by it.
	slices.SortStableFunc(b.Routes, func(x, y LinkRoute) int { return cmp.Compare(x.Gateway.BitLen(), y.Gateway.BitLen()) })
	return b, nil
}

func linkRoute(r netlink.Route, family int) (LinkRoute, bool) {
	l := LinkRoute{
		Table: r.Table, Metric: r.Priority, Protocol: int(r.Protocol), Scope: int(r.Scope), Type: r.Type,
		Flags: r.Flags & int(netlink.FLAG_ONLINK), MTU: r.MTU,
	}
	switch {
	case r.Dst != nil:
		p, ok := asPrefix(r.Dst)
		if !ok || p.Addr().IsLinkLocalUnicast() && p.Addr().Is6() || p.Addr().IsMulticast() {
			return l, false
		}
		l.Dst = p
	case family == netlink.FAMILY_V4:
		l.Dst = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	default:
		l.Dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if a, ok := netip.AddrFromSlice(r.Gw); ok {
		l.Gateway = a.Unmap()
	}
	if a, ok := netip.AddrFromSlice(r.Src); ok {
		l.Source = a.Unmap()
	}
	return l, true
}

// Empty reports that the link has neither addresses nor routes.
func (b LinkConfig) Empty() bool { return len(b.Addrs) == 0 && len(b.Routes) == 0 }

// With is b with what other has in addition, of which there is one for each address, and for
// each destination by table and metric.
func (b LinkConfig) With(other LinkConfig) LinkConfig {
	b.Addrs, b.Routes = slices.Clone(b.Addrs), slices.Clone(b.Routes)
	for _, a := range other.Addrs {
		if !slices.ContainsFunc(b.Addrs, func(x LinkAddress) bool { return x.Prefix == a.Prefix }) {
			b.Addrs = append(b.Addrs, a)
		}
	}
	for _, r := range other.Routes {
		same := func(x LinkRoute) bool { return x.Dst == r.Dst && x.Table == r.Table && x.Metric == r.Metric }
		if i := slices.IndexFunc(b.Routes, same); i >= 0 {
			b.Routes[i] = r
		} else {
			b.Routes = append(b.Routes, r)
		}
	}
	return b
}

// Move moves the configuration from one link to another; part of it may be there already. An
// address is always on one of the two.
func (b LinkConfig) Move(from, to netlink.Link) error {
	if err := netlink.LinkSetUp(to); err != nil {
		return fmt.Errorf("set %s up: %w", to.Attrs().Name, err)
	}
	have, err := ReadLinkConfig(to)
	if err != nil {
		return err
	}
	var old LinkConfig
	if from != nil {
		if old, err = ReadLinkConfig(from); err != nil {
			return err
		}
	}
	for _, a := range b.Addrs {
		if !holds(have, a.Prefix) {
			x := a
			if x.Prefix.Addr().Is6() && to.Attrs().Name != b.Link {
				x.Flags |= unix.IFA_F_NODAD // nobody else has it: it was ours
			}
			if err := addAddress(to, x); err != nil {
				return err
			}
		}
		if holds(old, a.Prefix) {
			if err := netlink.AddrDel(from, &netlink.Addr{IPNet: netipx.PrefixIPNet(a.Prefix)}); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("remove the address %s of %s: %w", a.Prefix, from.Attrs().Name, err)
			}
		}
	}
	if from != nil { // some routes went with the addresses
		if old, err = ReadLinkConfig(from); err != nil {
			return err
		}
	}
	for _, r := range old.Routes {
		if !slices.Contains(b.Routes, r) {
			continue
		}
		if err := netlink.RouteDel(r.over(from)); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove the route to %s over %s: %w", r.Dst, from.Attrs().Name, err)
		}
	}
	for _, r := range b.Routes {
		if slices.Contains(have.Routes, r) {
			continue
		}
		// Those of addresses are there with these.
		if err := netlink.RouteAdd(r.over(to)); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add the route to %s over %s: %w", r.Dst, to.Attrs().Name, err)
		}
	}
	return nil
}

func holds(b LinkConfig, p netip.Prefix) bool {
	return slices.ContainsFunc(b.Addrs, func(a LinkAddress) bool { return a.Prefix == p })
}

// addAddress gives a link an address, with its label if that fits the link.
func addAddress(to netlink.Link, a LinkAddress) error {
	x := &netlink.Addr{IPNet: netipx.PrefixIPNet(a.Prefix), Scope: a.Scope, Flags: a.Flags}
	switch {
	case a.Broadcast.IsValid():
		x.Broadcast = a.Broadcast.AsSlice()
	case a.Prefix.Addr().Is4():
		x.Broadcast = net.IPv4zero.To4() // none; nil would be made one
	}
	if name := to.Attrs().Name; a.Label == name || len(a.Label) > len(name) && a.Label[:len(name)+1] == name+":" {
		x.Label = a.Label
	}
	if err := netlink.AddrReplace(to, x); err != nil {
		return fmt.Errorf("give the address %s to %s: %w", a.Prefix, to.Attrs().Name, err)
	}
	return nil
}

func (r LinkRoute) over(link netlink.Link) *netlink.Route {
	out := &netlink.Route{
		LinkIndex: link.Attrs().Index, Dst: netipx.PrefixIPNet(r.Dst), Table: r.Table, Priority: r.Metric,
		Protocol: netlink.RouteProtocol(r.Protocol), Scope: netlink.Scope(r.Scope), Type: r.Type, Flags: r.Flags, MTU: r.MTU,
	}
	if r.Gateway.IsValid() {
		out.Gw = r.Gateway.AsSlice()
	}
	if r.Source.IsValid() {
		out.Src = r.Source.AsSlice()
	}
	return out
}

// Mute keeps the host from hearing anything by a link that a userspace switch listens
// on, too: the switch hands the frames to the host by another link of the same hardware
// address. Unmute undoes it.
func (b LinkConfig) Mute(link netlink.Link) error {
	mac, err := net.ParseMAC(b.MAC)
	if err != nil {
		return err
	}
	other := slices.Clone(mac)
	other[0] = (other[0] ^ 0x40) | 2 // locally administered (IEEE 802)
	return b.voice(link, other, true, "1")
}

// Unmute undoes Mute: the link gets back what was stored.
func (b LinkConfig) Unmute(link netlink.Link) error {
	mac, err := net.ParseMAC(b.MAC)
	if err != nil {
		return err
	}
	if !b.Promisc { // a switch that was killed leaves it so
		if err := netlink.SetPromiscOff(link); err != nil {
			return fmt.Errorf("set %s not promiscuous: %w", b.Link, err)
		}
	}
	return b.voice(link, mac, b.NoARP, b.NoIPv6)
}

func (b LinkConfig) voice(link netlink.Link, mac net.HardwareAddr, noARP bool, noIPv6 string) error {
	name := link.Attrs().Name
	if !slices.Equal(link.Attrs().HardwareAddr, mac) {
		err := netlink.LinkSetHardwareAddr(link, mac)
		if errors.Is(err, unix.EBUSY) { // hardware that changes it only while down
			err = errors.Join(netlink.LinkSetDown(link), netlink.LinkSetHardwareAddr(link, mac), netlink.LinkSetUp(link))
		}
		if err != nil {
			return fmt.Errorf("set the hardware address of %s to %s: %w", name, mac, err)
		}
	}
	arp := netlink.LinkSetARPOn
	if noARP {
		arp = netlink.LinkSetARPOff
	}
	if err := arp(link); err != nil {
		return fmt.Errorf("set whether %s does ARP: %w", name, err)
	}
	if noIPv6 == "" {
		return nil
	}
	return set("net/ipv6/conf/"+name+"/disable_ipv6", noIPv6)
}
