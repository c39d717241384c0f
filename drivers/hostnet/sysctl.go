package hostnet

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
)

// sysctls changes kernel settings. Those of other people's links are noted first with
// what they were, so that they can be put back.
type sysctls struct {
	// note keeps a setting's former value, for example net/ipv4/conf/eth0/forwarding, 0.
	note func(path, old string) error
}

const sysRoot = "/proc/sys"

// read returns a setting, or false where the kernel does not have it.
func read(path string) (string, bool) {
	raw, err := os.ReadFile(filepath.Join(sysRoot, path))
	return strings.TrimSpace(string(raw)), err == nil
}

// set changes a setting that is not so already; one the kernel does not have is left.
func set(path, value string) error {
	if have, ok := read(path); !ok || have == value {
		return nil
	}
	if err := os.WriteFile(filepath.Join(sysRoot, path), []byte(value), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set %s to %s: %w", path, value, err)
	}
	return nil
}

// Restore puts a setting back that was noted.
func Restore(path, value string) error {
	if !strings.HasPrefix(path, "net/") || strings.Contains(path, "..") {
		return fmt.Errorf("setting %q: expected one below net/", path)
	}
	return set(path, value)
}

// change is set with the old value noted before.
func (s sysctls) change(path, value string) error {
	have, ok := read(path)
	if !ok || have == value {
		return nil
	}
	if s.note != nil {
		if err := s.note(path, have); err != nil {
			return fmt.Errorf("note the value of %s: %w", path, err)
		}
	}
	return set(path, value)
}

// forLink is what our own links need; it goes with them.
func (sysctls) forLink(name string) error {
	v4, v6 := "net/ipv4/conf/"+name+"/", "net/ipv6/conf/"+name+"/"
	return errors.Join(
		set(v4+"forwarding", "1"),
		set(v4+"rp_filter", "2"), // answers may take another way than questions
		set(v4+"send_redirects", "0"),
		set(v4+"accept_redirects", "0"),
		set(v4+"accept_source_route", "0"),
		set(v6+"addr_gen_mode", "0"), // under another link-local address the switch lets nothing through
		set(v6+"disable_ipv6", "0"),
		set(v6+"accept_ra", "0"),
		set(v6+"accept_redirects", "0"),
		set(v6+"accept_source_route", "0"),
		set(v6+"force_forwarding", "1"),
	)
}

// forward lets answers from the world come back to our links: for IPv4 the link that a
// packet comes in by decides, so the links to the world must. For IPv6 it is
// one setting for all, unless the kernel has one per link (since 6.17); that setting
// makes links deaf to router advertisements, to which they may owe their own default
// route, unless they are told otherwise.
func (s sysctls) forward(p Plan) error {
	var failed []error
	if p.World4 {
		for _, name := range outsideLinks(netlink.FAMILY_V4, p.Outside) {
			failed = append(failed, s.change("net/ipv4/conf/"+name+"/forwarding", "1"))
		}
	}
	if !p.World6 {
		return errors.Join(failed...)
	}
	if _, perLink := read("net/ipv6/conf/all/force_forwarding"); perLink {
		for _, name := range outsideLinks(netlink.FAMILY_V6, p.Outside) {
			failed = append(failed, s.change("net/ipv6/conf/"+name+"/force_forwarding", "1"))
		}
		return errors.Join(failed...)
	}
	if all, ok := read("net/ipv6/conf/all/forwarding"); !ok || all == "1" {
		return errors.Join(failed...)
	}
	for _, name := range outsideLinks(netlink.FAMILY_V6, p.Outside) {
		if ra, _ := read("net/ipv6/conf/" + name + "/accept_ra"); ra == "1" {
			failed = append(failed, s.change("net/ipv6/conf/"+name+"/accept_ra", "2"))
		}
	}
	return errors.Join(append(failed, s.change("net/ipv6/conf/all/forwarding", "1"))...)
}

// outsideLinks names the links of the default routes and of some addresses.
func outsideLinks(family int, addrs []netip.Addr) []string {
	found := map[int]bool{}
	routes, err := netlinksafe.RouteList(nil, family)
	if err != nil {
		return nil // there is nothing to forward to, either
	}
	for _, r := range routes {
		if r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		found[r.LinkIndex] = true
		for _, hop := range r.MultiPath {
			found[hop.LinkIndex] = true
		}
	}
	have, _ := netlinksafe.AddrList(nil, netlink.FAMILY_ALL)
	for _, a := range have {
		if p, ok := asPrefix(a.IPNet); ok && slices.Contains(addrs, p.Addr()) {
			found[a.LinkIndex] = true
		}
	}
	var out []string
	for index := range found {
		if l, err := netlink.LinkByIndex(index); err == nil {
			out = append(out, l.Attrs().Name)
		}
	}
	slices.Sort(out)
	return out
}
