package hostinit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/contiv/netplugin/test/lab/nsenter"
)

func setSysctls(settings []Sysctl) error {
	for _, s := range settings {
		err := os.WriteFile(filepath.Join("/proc/sys", s.Path), []byte(s.Value), 0o644)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set sysctl %s to %q: %w", s.Path, s.Value, err)
		}
	}
	return nil
}

// linkUp sets the link called name up in the calling thread's network namespace.
func linkUp(name string) error {
	link, err := netlinksafe.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link %s up: %w", name, err)
	}
	return nil
}

// Address sets a link up and gives it an address; both may be so already.
func Address(h *netlink.Handle, link netlink.Link, address netip.Prefix) error {
	parsed, err := netlink.ParseAddr(address.String())
	if err != nil {
		return fmt.Errorf("address %s: %w", address, err)
	}
	if address.Addr().Is6() {
		parsed.Flags = unix.IFA_F_NODAD // nobody else has it, and it is to be usable at once
	}
	if err := h.AddrReplace(link, parsed); err != nil {
		return fmt.Errorf("give %s to link %s: %w", address, link.Attrs().Name, err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link %s up: %w", link.Attrs().Name, err)
	}
	return nil
}

// keepAddresses addresses every link of the map each time one of its name appears,
// and keeps it up, until ctx ends. Links that are there already are included.
func keepAddresses(ctx context.Context, addresses map[string]netip.Prefix, failed func(error)) error {
	if len(addresses) == 0 {
		return nil
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	updates := make(chan netlink.LinkUpdate, 64)
	options := netlink.LinkSubscribeOptions{ListExisting: true, ErrorCallback: failed}
	if err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), options); err != nil {
		h.Close()
		return fmt.Errorf("watch links: %w", err)
	}
	go func() {
		defer h.Close()
		done := map[string]int{} // name → index of the link that has its address
		for u := range updates {
			name, index := u.Link.Attrs().Name, u.Link.Attrs().Index
			address, ours := addresses[name]
			if !ours || u.Header.Type != unix.RTM_NEWLINK {
				continue
			}
			// A switch that sets its bridge's hardware address takes it down for that.
			if done[name] == index && u.Link.Attrs().Flags&net.FlagUp != 0 {
				continue
			}
			if err := Address(h, u.Link, address); err != nil {
				failed(err)
				continue
			}
			done[name] = index
		}
	}()
	return nil
}

// addNetns makes a network namespace with its loopback up and keeps it at
// /run/netns/<name>.
func addNetns(name string) (string, error) {
	path := filepath.Join(NetnsDir, name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return "", fmt.Errorf("make network namespace: %w", err)
	}
	file.Close()
	err = nsenter.Thread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		if err := linkUp("lo"); err != nil {
			return err
		}
		if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("keep network namespace at %s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// removeNetns forgets a network namespace; the kernel ends it when its last process
// has gone. Removing one that is not there is no error.
func removeNetns(name string) error {
	path := filepath.Join(NetnsDir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("release network namespace %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
