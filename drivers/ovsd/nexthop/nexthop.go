// Package nexthop reads and watches the kernel's neighbor table. The kernel resolves the
// next hops of routes: it needs the neighbors for the BGP speaker's own connections anyway,
// verifies them when they fall silent, and notices when they move.
package nexthop

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/utils/netx"
)

// validNeighbor are the states in which a neighbor's address may be used (NUD_VALID).
const validNeighbor = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE | netlink.NUD_PROBE | netlink.NUD_STALE | netlink.NUD_DELAY

// MACs returns the MACs of a link's neighbors.
func MACs(link int) (map[netip.Addr]ofnet.MAC, error) {
	list, err := netx.ListSafely(func() ([]netlink.Neigh, error) { return netlink.NeighList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("read the neighbors on link %d: %w", link, err)
	}
	macs := map[netip.Addr]ofnet.MAC{}
	for _, n := range list {
		a, ok := netip.AddrFromSlice(n.IP)
		if ok && n.State&validNeighbor != 0 && len(n.HardwareAddr) == len(ofnet.MAC{}) {
			macs[a.Unmap()] = ofnet.MAC(n.HardwareAddr)
		}
	}
	return macs, nil
}

// Solicit has the kernel resolve a neighbor, or verify one it has not heard from recently.
func Solicit(link int, a netip.Addr) {
	family := netlink.FAMILY_V4
	if a.Is6() {
		family = netlink.FAMILY_V6
	}
	// It fails only while the link is down or missing, and is repeated.
	_ = netlink.NeighSet(&netlink.Neigh{LinkIndex: link, Family: family, IP: a.AsSlice(), Flags: netlink.NTF_USE})
}

// Watch signals, until ctx ends, when a link of that name or its neighbors may have
// changed.
func Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	// An overrun loses events: then everything is checked again.
	options := func(error) { wake() }
	links, neighbors := make(chan netlink.LinkUpdate, 64), make(chan netlink.NeighUpdate, 64)
	if err := netlink.LinkSubscribeWithOptions(links, ctx.Done(), netlink.LinkSubscribeOptions{ErrorCallback: options}); err != nil {
		return nil, fmt.Errorf("watch the links: %w", err)
	}
	if err := netlink.NeighSubscribeWithOptions(neighbors, ctx.Done(), netlink.NeighSubscribeOptions{ErrorCallback: options}); err != nil {
		return nil, fmt.Errorf("watch the neighbors: %w", err)
	}
	go func() { // ends with the channels, which end with ctx
		for u := range links {
			if u.Link.Attrs().Name == name {
				wake()
			}
		}
	}()
	go func() {
		for u := range neighbors {
			if link, err := netlinksafe.LinkByName(name); err == nil && link.Attrs().Index == u.LinkIndex {
				wake()
			}
		}
	}()
	return changed, nil
}
