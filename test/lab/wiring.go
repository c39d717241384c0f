package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab/hostinit"
	"github.com/contiv/netplugin/utils/errs"
)

// inNetwork gives f a netlink handle in the network namespace of process pid.
func inNetwork(pid int, f func(h *netlink.Handle, ns netns.NsHandle) error) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("open network namespace of process %d: %w", pid, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink in network namespace of process %d: %w", pid, err)
	}
	defer h.Close()
	return f(h, ns)
}

// startUnderlay makes the namespace with the bridges that join the hosts.
func (l *Lab) startUnderlay(ctx context.Context) error {
	pid, err := l.startInit(ctx, underlayName, hostinit.Config{
		Hostname: underlayName,
		Sysctls: []hostinit.Sysctl{
			// Frames are not the underlay's to look at, and it has nothing to say itself.
			{Path: "net/bridge/bridge-nf-call-iptables", Value: "0"},
			{Path: "net/bridge/bridge-nf-call-ip6tables", Value: "0"},
			{Path: "net/bridge/bridge-nf-call-arptables", Value: "0"},
			{Path: "net/ipv6/conf/all/disable_ipv6", Value: "1"},
			{Path: "net/ipv6/conf/default/disable_ipv6", Value: "1"},
		},
	})
	if err != nil {
		return err
	}
	l.underlay.pid = pid
	err = inNetwork(pid, func(h *netlink.Handle, _ netns.NsHandle) error {
		for _, n := range networks() {
			bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: n.bridge}}
			if err := h.LinkAdd(bridge); err != nil {
				return fmt.Errorf("add bridge %s: %w", n.bridge, err)
			}
			if err := h.LinkSetUp(bridge); err != nil {
				return fmt.Errorf("set bridge %s up: %w", n.bridge, err)
			}
		}
		return nil
	})
	if err != nil || !l.cfg.Kubernetes {
		return err
	}
	return l.addOutsider(ctx)
}

// port is the name, in the underlay, of a host's cable to a network.
func (h *Host) port(n network) string { return h.Name + "-" + n.bridge }

// plug connects a host to every network of the underlay.
func (l *Lab) plug(h *Host) error {
	host, err := netns.GetFromPid(h.pid)
	if err != nil {
		return fmt.Errorf("open network namespace of process %d: %w", h.pid, err)
	}
	defer host.Close()
	return inNetwork(l.underlay.pid, func(u *netlink.Handle, _ netns.NsHandle) error {
		for _, n := range networks() {
			bridge, err := u.LinkByName(n.bridge)
			if err != nil {
				return fmt.Errorf("find bridge %s: %w", n.bridge, err)
			}
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MasterIndex = h.port(n), bridge.Attrs().Index
			attrs.Flags |= net.FlagUp
			veth := &netlink.Veth{LinkAttrs: attrs, PeerName: n.link, PeerNamespace: netlink.NsFd(host)}
			if err := u.LinkAdd(veth); err != nil {
				return fmt.Errorf("add link %s: %w", attrs.Name, err)
			}
		}
		return nil
	})
}

// configure sets the host's ends of its cables up.
func (h *Host) configure() error {
	return inNetwork(h.pid, func(nl *netlink.Handle, _ netns.NsHandle) error {
		for _, n := range networks() {
			link, err := nl.LinkByName(n.link)
			if err != nil {
				return fmt.Errorf("find link %s: %w", n.link, err)
			}
			if err := nl.LinkSetUp(link); err != nil {
				return fmt.Errorf("set link %s up: %w", n.link, err)
			}
			if n.bridge != "control" {
				continue // the host's init sets the tunnel address, and the trunk has none
			}
			if err := hostinit.Address(nl, link, hostPrefix(n, h.Number)); err != nil {
				return err
			}
			if !h.lab.cfg.Kubernetes {
				continue
			}
			if err := hostinit.Address(nl, link, netip.PrefixFrom(ControlIP6(h.Number), controlPrefix6.Bits())); err != nil {
				return err
			}
			for _, gateway := range []string{OutsiderIP, OutsiderIP6} {
				if err := nl.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}); err != nil {
					return fmt.Errorf("add default route by %s: %w", gateway, err)
				}
			}
		}
		return nil
	})
}

// Partition cuts a host's cables to the named networks, all of them when none is
// named. Heal repairs them.
func (l *Lab) Partition(_ context.Context, host string, names ...string) error {
	return l.setCables(host, names, (*netlink.Handle).LinkSetDown)
}

// Heal repairs the cables that Partition cut.
func (l *Lab) Heal(_ context.Context, host string, names ...string) error {
	return l.setCables(host, names, (*netlink.Handle).LinkSetUp)
}

func (l *Lab) setCables(host string, names []string, set func(*netlink.Handle, netlink.Link) error) error {
	h, err := l.Host(host)
	if err != nil {
		return err
	}
	chosen, err := chooseNetworks(names)
	if err != nil {
		return err
	}
	if l.underlay.pid == 0 {
		return errs.New(errs.Unavailable, "the underlay is not running")
	}
	return inNetwork(l.underlay.pid, func(u *netlink.Handle, _ netns.NsHandle) error {
		for _, n := range chosen {
			link, err := u.LinkByName(h.port(n))
			if err != nil {
				return fmt.Errorf("find link %s: %w", h.port(n), err)
			}
			if err := set(u, link); err != nil {
				return fmt.Errorf("set link %s: %w", h.port(n), err)
			}
		}
		return nil
	})
}

func chooseNetworks(names []string) ([]network, error) {
	if len(names) == 0 {
		return networks(), nil
	}
	var chosen []network
next:
	for _, name := range names {
		for _, n := range networks() {
			if n.bridge == name {
				chosen = append(chosen, n)
				continue next
			}
		}
		return nil, errs.New(errs.Invalid, "network %q: expected one of %v", name, Networks())
	}
	return chosen, nil
}

// linkCNI fills the host's /opt/cni/bin: ours, unless it is to be installed, and the
// reference plugins for comparison and for chains.
func (h *Host) linkCNI() error {
	dir := h.file("/opt/cni/bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	link := func(target string) error {
		err := os.Symlink(target, filepath.Join(dir, filepath.Base(target)))
		if errors.Is(err, fs.ErrExist) { // from before the host was off
			return nil
		}
		return err
	}
	plugins := []string{contivk8s, Netcontiv}
	if h.lab.cfg.Bare && h.lab.cfg.Kubernetes {
		plugins = nil // whoever installs a network there brings them
	}
	for _, plugin := range plugins {
		if err := link("/opt/contiv/bin/" + plugin); err != nil {
			return err
		}
	}
	reference, err := filepath.Glob("/usr/lib/cni/*")
	if err != nil {
		return err
	}
	built, err := containerdDir()
	if err != nil {
		return err
	}
	for _, path := range reference {
		if name := filepath.Base(path); h.containerd() == ContainerdBuilt && slices.Contains(builtPlugins(), name) {
			path = filepath.Join(built, name)
		}
		if err := link(path); err != nil {
			return err
		}
	}
	return nil
}

// AddUplink plugs another cable of a host into the trunk, with the given name at the
// host's end, up and without offloads. It goes with the host.
func (h *Host) AddUplink(ctx context.Context, link string) error {
	host, err := netns.GetFromPid(h.pid)
	if err != nil {
		return fmt.Errorf("open network namespace of process %d: %w", h.pid, err)
	}
	defer host.Close()
	err = inNetwork(h.lab.underlay.pid, func(u *netlink.Handle, _ netns.NsHandle) error {
		bridge, err := u.LinkByName("trunk")
		if err != nil {
			return fmt.Errorf("find bridge trunk: %w", err)
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MasterIndex = h.Name+"-"+link, bridge.Attrs().Index
		attrs.Flags |= net.FlagUp
		return u.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: link, PeerNamespace: netlink.NsFd(host)})
	})
	if err != nil {
		return fmt.Errorf("add link %s of %s: %w", link, h.Name, err)
	}
	_, err = h.Output(ctx, "sh", "-ec", "ethtool -K "+link+" tx off >/dev/null; ip link set "+link+" up")
	return err
}
