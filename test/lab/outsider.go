package lab

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/contiv/netplugin/test/lab/hostinit"
)

// Outsider names, in a lab with Kubernetes, a machine on the control network that is not a
// node. It is the default gateway of the nodes, and has, besides its own, the addresses
// BeyondIP and BeyondIP6, which stand for the rest of the world. What is sent to
// OutsiderRoutes, which nobody has, it sends to host1.
const Outsider = "outsider"

// OutsiderIP and OutsiderIP6 are its addresses.
const OutsiderIP, OutsiderIP6 = "192.168.2.200", "fd00:192:168:2::c8"

// BeyondIP and BeyondIP6 are addresses that nodes reach by their default routes.
const BeyondIP, BeyondIP6 = "198.51.100.1", "2001:db8:198::1"

// OutsiderRoutes are where a cluster may have addresses that others lead to its nodes:
// of load balancers, and external ones.
const OutsiderRoutes, OutsiderRoutes6 = "203.0.113.0/24", "2001:db8:203::/64"

func (l *Lab) outsiderNetns() string { return hostinit.NetnsDir + "/" + Outsider }

// addOutsider creates it, in the underlay.
func (l *Lab) addOutsider(ctx context.Context) error {
	client, err := l.underlay.client()
	if err != nil {
		return err
	}
	if _, err := client.AddNetns(ctx, Outsider); err != nil {
		return err
	}
	control := networks()[0]
	err = inNetwork(l.underlay.pid, func(u *netlink.Handle, _ netns.NsHandle) error {
		bridge, err := u.LinkByName(control.bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", control.bridge, err)
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = Outsider, bridge.Attrs().Index
		attrs.Flags |= net.FlagUp
		if err := u.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: Outsider + "-peer"}); err != nil {
			return fmt.Errorf("add link %s: %w", attrs.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	script := strings.NewReplacer("NAME", Outsider, "ADDRESS4", OutsiderIP, "ADDRESS6", OutsiderIP6, "ROUTES4", OutsiderRoutes,
		"BEYOND4", BeyondIP, "BEYOND6", BeyondIP6, "ROUTES6", OutsiderRoutes6, "HOST4", ControlIP(1).String(), "HOST6", ControlIP6(1).String()).Replace(`
ip link set NAME-peer netns NAME name eth0
ip -n NAME link set lo up
ip -n NAME address add BEYOND4/32 dev lo
ip -n NAME -6 address add BEYOND6/128 dev lo nodad
ip -n NAME address add ADDRESS4/24 dev eth0
ip -n NAME -6 address add ADDRESS6/64 dev eth0 nodad
ip -n NAME link set eth0 up
ip -n NAME route add ROUTES4 via HOST4
ip -n NAME -6 route add ROUTES6 via HOST6
`)
	_, err = l.underlay.Output(ctx, "sh", "-ec", script)
	return err
}
