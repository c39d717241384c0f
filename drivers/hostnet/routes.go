package hostnet

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/utils/delta"
)

// applyRoutes makes the routes with our mark those of the plan, as far as their links
// are there.
func applyRoutes(want []Route, links map[string]netlink.Link) error {
	have, err := ourRoutes()
	if err != nil {
		return err
	}
	names := map[int]string{}
	for name, l := range links {
		names[l.Attrs().Index] = name
	}
	diff := delta.NewComparable[netip.Prefix, Route]()
	for _, r := range have {
		if dst, ok := asPrefix(r.Dst); ok {
			src, _ := netip.AddrFromSlice(r.Src)
			diff.SetActual(dst, Route{Dst: dst, Link: names[r.LinkIndex], Src: src.Unmap()})
		}
	}
	for _, r := range want {
		if links[r.Link] != nil {
			diff.SetDesired(r.Dst, r)
		}
	}
	var failed []error
	for c := range diff.Pending() {
		if c.Op != delta.Add {
			err = removeRoute(c.Key)
		}
		if err == nil && c.Op != delta.Remove {
			err = addRoute(c.Want, links[c.Want.Link])
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// addRoute adds a route; one of somebody else to the same destination stays.
func addRoute(r Route, link netlink.Link) error {
	k := &netlink.Route{
		Dst: netipx.PrefixIPNet(r.Dst), LinkIndex: link.Attrs().Index, Protocol: RouteProtocol, Table: unix.RT_TABLE_MAIN, Scope: netlink.SCOPE_LINK,
	}
	if r.Src.IsValid() {
		k.Src = r.Src.AsSlice()
	}
	err := netlink.RouteAdd(k)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("route to %s over %s: this host has another route there already; remove it, or choose another subnet", r.Dst, r.Link)
	}
	if err != nil {
		return fmt.Errorf("route to %s over %s: %w", r.Dst, r.Link, err)
	}
	return nil
}

// removeRoute removes our route to a destination, never somebody else's.
func removeRoute(dst netip.Prefix) error {
	all, err := ourRoutes()
	if err != nil {
		return err
	}
	for _, r := range all {
		if p, ok := asPrefix(r.Dst); !ok || p != dst {
			continue
		}
		if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove the route to %s: %w", dst, err)
		}
	}
	return nil
}

func ourRoutes() ([]netlink.Route, error) {
	filter := &netlink.Route{Protocol: RouteProtocol, Table: unix.RT_TABLE_MAIN}
	var out []netlink.Route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlinksafe.RouteListFiltered(family, filter, netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		out = append(out, routes...)
	}
	return out, nil
}
