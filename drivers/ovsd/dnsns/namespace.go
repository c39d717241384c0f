// Package dnsns manages the network namespace in which containers' name queries by TCP are
// answered.
package dnsns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/contiv/netplugin/drivers/ovsd/veth"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/ofnet"
)

// Namespace is a network namespace in which every address is local, except those that stand
// for containers: these are routed to the link of their bridge.
//
// It is mounted on a file, so that it outlives the agent: if its links came and went with
// the agent, the switch would rebuild its ports and lose packets of others.
type Namespace struct {
	ns       netns.NsHandle
	Listener net.Listener // port 53 at all addresses
}

// Open enters the namespace mounted on a file, or creates it.
func Open(path string) (*Namespace, error) {
	r := &Namespace{ns: netns.None()}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := r.enter(path)
		if err == nil {
			err = r.configure()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Namespace) enter(path string) (err error) {
	if Exists(path) {
		if r.ns, err = netns.GetFromPath(path); err != nil {
			return err
		}
		return netns.Set(r.ns)
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	if r.ns, err = netns.Get(); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
		return err
	}
	return unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "", unix.MS_BIND, "")
}

// Exists reports whether a namespace is mounted on a file.
func Exists(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// Remove removes the namespace and its links, if it exists.
func Remove(path string) error {
	if Exists(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Has reports whether the namespace has its link to a bridge, with an end of that name.
func (r *Namespace) Has(encap ofnet.Encap, ovsName string) bool {
	outer, err := netlinksafe.LinkByName(ovsName)
	if err != nil {
		return false
	}
	return r.inside(func() error {
		inner, err := netlinksafe.LinkByName(encap.String())
		if err == nil && inner.Attrs().ParentIndex != outer.Attrs().Index {
			err = unix.ENODEV
		}
		return err
	}) == nil
}

func (r *Namespace) configure() error {
	lo, err := netlinksafe.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return err
	}
	for _, all := range []string{"0.0.0.0/0", "::/0"} {
		if err := addLocalRoute(lo, netip.MustParsePrefix(all), unix.RTN_LOCAL); err != nil {
			return err
		}
	}
	r.Listener, err = net.Listen("tcp", ":53")
	return err
}

// addLocalRoute adds a route to the table that is looked up first.
func addLocalRoute(link netlink.Link, to netip.Prefix, kind int) error {
	if to.Addr().Is6() {
		if _, err := os.Stat("/proc/sys/net/ipv6"); errors.Is(err, os.ErrNotExist) {
			return nil // a kernel without IPv6
		}
	}
	route := &netlink.Route{
		LinkIndex: link.Attrs().Index, Table: unix.RT_TABLE_LOCAL, Type: kind,
		Dst: netipx.PrefixIPNet(to),
	}
	if to.Addr().Is4() {
		route.Scope = netlink.SCOPE_LINK
		if kind == unix.RTN_LOCAL {
			route.Scope = netlink.SCOPE_HOST
		}
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route to %s: %w", to, err)
	}
	return nil
}

// Join creates the link between the namespace and a bridge; its end here is named ovsName.
func (r *Namespace) Join(encap ofnet.Encap, ovsName string, mtu int) error {
	name := encap.String()
	if err := r.inside(func() error { return veth.Remove(name) }); err != nil { // of a port that no longer exists
		return err
	}
	if err := veth.Make(ovsName, fmt.Sprintf("/proc/self/fd/%d", int(r.ns)), name, mtu); err != nil {
		return err
	}
	return r.inside(func() error {
		link, err := netlinksafe.LinkByName(name)
		if err != nil {
			return err
		}
		// No ARP: flows set the addresses of every frame that leaves.
		if err := errors.Join(netlink.LinkSetHardwareAddr(link, ofnet.DNSMAC[:]), netlink.LinkSetARPOff(link), netlink.LinkSetUp(link)); err != nil {
			return err
		}
		// A reverse path filter would drop everything, as the sources have no routes in
		// the main table.
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/rp_filter", []byte("0"), 0o644); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return errors.Join(
			addLocalRoute(link, netip.PrefixFrom(ofnet.DNSClient4(encap, 0), 16), unix.RTN_UNICAST),
			addLocalRoute(link, netip.PrefixFrom(ofnet.DNSClient6(encap, 0), 72), unix.RTN_UNICAST))
	})
}

// inside runs f on a thread in the namespace.
func (r *Namespace) inside(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := netns.Set(r.ns)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// Close leaves the namespace, which stays.
func (r *Namespace) Close() {
	if r.Listener != nil {
		r.Listener.Close()
	}
	if r.ns.IsOpen() {
		r.ns.Close()
	}
}
