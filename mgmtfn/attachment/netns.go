package attachment

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/drivers"
	"github.com/contiv/netplugin/mgmtfn/cni"
	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/state"
	"github.com/contiv/netplugin/utils/errs"
)

// iface is the desired configuration of a container's interface.
type iface struct {
	netns  string
	name   string // inside the container
	mac    net.HardwareAddr
	mtu    int
	addrs  []netip.Prefix
	routes []route
}

// route is a default or on-link route; gw is zero for on-link.
type route struct {
	dst netip.Prefix
	gw  netip.Addr
}

func containerInterface(req Request, rec state.Endpoint, n drivers.Network, port drivers.Port) (*iface, error) {
	mac, err := net.ParseMAC(rec.MacAddress)
	if err != nil {
		return nil, errs.New(errs.Internal, "endpoint %s: %w", rec.ID, err)
	}
	c := &iface{netns: req.Netns, name: req.IfName, mac: mac, mtu: port.MTU}
	if req.MTU > 0 && req.MTU < c.mtu {
		c.mtu = req.MTU
	}
	routed := n.Encap == ofnet.VXLAN
	if err := c.family(rec.IPAddress, n.Subnet4, n.Gateway4, ofnet.LinkRouter4, routed); err != nil {
		return nil, errs.New(errs.Internal, "endpoint %s: %w", rec.ID, err)
	}
	if err := c.family(rec.IPv6Address, n.Subnet6, n.Gateway6, ofnet.LinkRouter6, routed); err != nil {
		return nil, errs.New(errs.Internal, "endpoint %s: %w", rec.ID, err)
	}
	if len(c.addrs) == 0 {
		return nil, errs.New(errs.Internal, "endpoint %s has no address", rec.ID)
	}
	return c, nil
}

// family adds the address and default route of one family.
func (c *iface) family(addr string, subnet netip.Prefix, gateway, fallback netip.Addr, routed bool) error {
	if addr == "" {
		return nil
	}
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return err
	}
	if !subnet.IsValid() {
		return fmt.Errorf("address %s but its network has no subnet of that family", addr)
	}
	c.addrs = append(c.addrs, netip.PrefixFrom(a, subnet.Bits()))
	any := netip.PrefixFrom(unspecified(a), 0)
	switch {
	case gateway.IsValid():
		c.routes = append(c.routes, route{any, gateway})
	case routed:
		c.routes = append(c.routes, route{netip.PrefixFrom(fallback, fallback.BitLen()), netip.Addr{}}, route{any, fallback})
	}
	return nil
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// configure sets up the interface inside the container. What an earlier, interrupted call
// has done already is kept.
func (c *iface) configure() error {
	container, err := ns.GetNS(c.netns)
	if err != nil {
		return failed(StepNetns, fmt.Errorf("network namespace %s: %w", c.netns, err))
	}
	defer container.Close()
	return container.Do(func(ns.NetNS) error {
		link, err := c.settle()
		if err != nil {
			return failed(StepInterface, err)
		}
		return failed(StepRoutes, c.addRoutes(link))
	})
}

// settle gives the interface its MAC, MTU and addresses and brings it up.
func (c *iface) settle() (netlink.Link, error) {
	link, err := netlinksafe.LinkByName(c.name)
	if err != nil {
		return nil, errs.New(errs.Conflict, "interface %s is not in the container: %w", c.name, err)
	}
	if link.Attrs().HardwareAddr.String() != c.mac.String() {
		if err := netlink.LinkSetHardwareAddr(link, c.mac); err != nil {
			return nil, fmt.Errorf("set the MAC address of %s: %w", c.name, err)
		}
	}
	if link.Attrs().MTU != c.mtu {
		if err := netlink.LinkSetMTU(link, c.mtu); err != nil {
			return nil, fmt.Errorf("set the MTU of %s to %d: %w", c.name, c.mtu, err)
		}
	}
	if lo, err := netlinksafe.LinkByName("lo"); err == nil && lo.Attrs().Flags&net.FlagUp == 0 {
		if err := netlink.LinkSetUp(lo); err != nil {
			return nil, fmt.Errorf("bring lo up: %w", err)
		}
	}
	for _, p := range c.addrs {
		if p.Addr().Is6() {
			if err := allowIPv6(c.name); err != nil {
				return nil, err
			}
		}
		addr := &netlink.Addr{IPNet: netipx.PrefixIPNet(p)}
		if p.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // netmaster guarantees that it is unique
		}
		if err := netlink.AddrAdd(link, addr); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("give %s the address %s: %w", c.name, p, err)
		}
	}
	if err := linkLocalFromMAC(c.name); err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("bring %s up: %w", c.name, err)
	}
	return link, nil
}

// linkLocalFromMAC has the kernel derive the link-local address from the MAC address (RFC
// 4291 appendix A): the switch drops packets from any other one.
func linkLocalFromMAC(name string) error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/addr_gen_mode", []byte("0"), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return fmt.Errorf("derive the link-local address of %s from its MAC address: %w", name, err)
	}
	return nil
}

// allowIPv6 undoes a runtime's disable_ipv6 and ignores router advertisements: addresses
// and routes come from Contiv.
func allowIPv6(name string) error {
	dir := "/proc/sys/net/ipv6/conf/" + name + "/"
	for file, value := range map[string]string{"disable_ipv6": "0", "accept_ra": "0"} {
		have, err := os.ReadFile(dir + file)
		if err == nil && len(have) > 0 && have[0] == value[0] {
			continue
		}
		if err := os.WriteFile(dir+file, []byte(value), 0o644); err != nil && file == "disable_ipv6" {
			return fmt.Errorf("enable IPv6 on %s: %w", name, err)
		}
	}
	return nil
}

func (c *iface) addRoutes(link netlink.Link) error {
	for _, r := range c.routes {
		nr := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: netipx.PrefixIPNet(r.dst)}
		if r.gw.IsValid() {
			nr.Gw = r.gw.AsSlice()
		} else {
			nr.Scope = netlink.SCOPE_LINK
		}
		if err := netlink.RouteAdd(nr); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("route %s via %s: %w", r.dst, r.gw, err)
		}
	}
	return nil
}

// verify checks a container's interface (CNI CHECK). Additional addresses and routes are
// fine.
func (c *iface) verify() error {
	container, err := ns.GetNS(c.netns)
	if err != nil {
		return failed(StepNetns, fmt.Errorf("network namespace %s: %w", c.netns, err))
	}
	defer container.Close()
	return container.Do(func(ns.NetNS) error {
		link, err := netlinksafe.LinkByName(c.name)
		if err != nil {
			return failed(StepInterface, fmt.Errorf("the container has no interface %s", c.name))
		}
		if have := link.Attrs().HardwareAddr.String(); have != c.mac.String() {
			return failed(StepInterface, fmt.Errorf("interface %s has MAC address %s, expected %s", c.name, have, c.mac))
		}
		for _, p := range c.addrs {
			if !hasAddr(link, p) {
				return failed(StepInterface, fmt.Errorf("interface %s lacks the address %s", c.name, p))
			}
		}
		for _, r := range c.routes {
			if !hasRoute(link, r) {
				return failed(StepRoutes, fmt.Errorf("the route %s via %s is missing", r.dst, r.gw))
			}
		}
		return nil
	})
}

func hasAddr(link netlink.Link, p netip.Prefix) bool {
	addrs, err := netlinksafe.AddrList(link, family(p.Addr()))
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if a.IPNet.String() == netipx.PrefixIPNet(p).String() {
			return true
		}
	}
	return false
}

func hasRoute(link netlink.Link, want route) bool {
	routes, err := netlinksafe.RouteList(link, family(want.dst.Addr()))
	if err != nil {
		return false
	}
	for _, r := range routes {
		dst := netip.PrefixFrom(unspecified(want.dst.Addr()), 0).String()
		if r.Dst != nil {
			dst = r.Dst.String()
		}
		gw, _ := netip.AddrFromSlice(r.Gw)
		if dst == want.dst.String() && gw.Unmap() == want.gw {
			return true
		}
	}
	return false
}

func family(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

// result describes the attachment of which c is the container's end.
func (c *iface) result(rec state.Endpoint, port drivers.Port) cni.Attached {
	r := cni.Attached{Endpoint: rec.EndpointID, MAC: rec.MacAddress, MTU: c.mtu, HostPort: port.OVSName}
	for _, p := range c.addrs {
		if p.Addr().Is4() {
			r.IPv4 = p.String()
		} else {
			r.IPv6 = p.String()
		}
	}
	for _, rt := range c.routes {
		out := cni.Route{Dst: rt.dst.String()}
		if rt.gw.IsValid() {
			out.Gateway = rt.gw.String()
			if rt.dst.Bits() == 0 && rt.gw.Is4() {
				r.Gateway4 = out.Gateway
			} else if rt.dst.Bits() == 0 {
				r.Gateway6 = out.Gateway
			}
		}
		r.Routes = append(r.Routes, out)
	}
	return r
}
