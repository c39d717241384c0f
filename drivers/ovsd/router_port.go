package ovsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/ofnet"
	"github.com/contiv/netplugin/ofnet/bgp"
	"github.com/contiv/netplugin/ovsdb"
	"github.com/contiv/netplugin/utils/errs"
)

// ensureRouterPort creates the router's port and its addresses where they are missing, and
// returns its OpenFlow number and the index of its link.
func (d *Driver) ensureRouterPort(ctx context.Context, c bgp.Config) (port uint32, link int, err error) {
	_, row, ok := d.find("Interface", "name", routerPort)
	if !ok {
		mark := ovsdb.StringMap(map[string]string{ownerKey: ownerMark})
		// The MAC by which other hosts and routers know this one.
		_, err := d.db.Transact(ctx, addPort(VLANBridge, "router", ovsdb.Row{"name": routerPort, "external_ids": mark}, ovsdb.Row{
			"name": routerPort, "type": "internal", "ofport_request": routerOFPort,
			"mac": ofnet.HostMAC(d.cfg.VTEP).String(), "external_ids": mark,
		})...)
		if err != nil {
			return 0, 0, fmt.Errorf("create the router port %s: %w", routerPort, err)
		}
		d.cfg.Log.WithField("port", routerPort).Info("router port created")
	}
	if row.Map("external_ids")[ownerKey] != ownerMark && ok {
		return 0, 0, errs.New(errs.Conflict, "an interface %s that is not netplugin's is in the switch: remove it", routerPort)
	}
	n, ok := row.Int("ofport")
	if !ok || n <= 0 {
		return 0, 0, errs.New(errs.Unavailable, "the router port %s has no number yet", routerPort)
	}
	l, err := netlinksafe.LinkByName(routerPort)
	if err != nil {
		return 0, 0, errs.New(errs.Unavailable, "the router port %s has no link yet: %w", routerPort, err)
	}
	if err := addressRouter(l, c); err != nil {
		return 0, 0, fmt.Errorf("router port %s: %w", routerPort, err)
	}
	return uint32(n), l.Attrs().Index, nil
}

// removeRouterPort removes the port if it exists.
func (d *Driver) removeRouterPort(ctx context.Context) error {
	id, _, ok := d.find("Port", "name", routerPort)
	if !ok {
		return nil
	}
	if err := d.removePorts(ctx, VLANBridge, id); err != nil {
		return fmt.Errorf("remove the router port %s: %w", routerPort, err)
	}
	d.cfg.Log.WithField("port", routerPort).Info("router port removed")
	return nil
}

// addressRouter sets the link's global addresses to those of the router.
func addressRouter(link netlink.Link, c bgp.Config) error {
	// The host must answer for the router's address only, and ignore router
	// advertisements.
	for path, value := range map[string]string{
		"ipv4/conf/" + routerPort + "/arp_ignore": "1", "ipv6/conf/" + routerPort + "/accept_ra": "0",
	} {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte(value), 0o644); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	wanted := map[netip.Prefix]bool{c.Router: true}
	if c.Router6.IsValid() {
		wanted[c.Router6] = true
	}
	have, err := netlinksafe.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("read its addresses: %w", err)
	}
	for _, a := range have {
		p := asPrefix(a.IPNet)
		if wanted[p] {
			delete(wanted, p)
		} else if !p.Addr().IsLinkLocalUnicast() {
			if err := netlink.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("remove the address %s: %w", p, err)
			}
		}
	}
	for p := range wanted {
		a := &netlink.Addr{IPNet: netipx.PrefixIPNet(p)}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD // the switch answers nobody else under it
		}
		if err := netlink.AddrReplace(link, a); err != nil {
			return fmt.Errorf("add the address %s: %w", p, err)
		}
	}
	if link.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set it up: %w", err)
	}
	return nil
}

func asPrefix(n *net.IPNet) netip.Prefix {
	a, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits)
}
