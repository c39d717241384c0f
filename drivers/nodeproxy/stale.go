package nodeproxy

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// stale finds connections, by what the kernel tracks, that should not be led where they
// are: nftables decides once for each, and a client of UDP might send to a provider that
// is gone for as long as it lives. It implements netlink.CustomConntrackFilter.
type stale struct {
	frontends map[frontendKey]*Frontend
	own       map[netip.Addr]struct{} // addresses of the node
}

type frontendKey struct {
	proto uint8
	addr  netip.AddrPort // of a node port: unspecified
}

func newStale(services []Service, own []netip.Addr) stale {
	s := stale{frontends: map[frontendKey]*Frontend{}, own: map[netip.Addr]struct{}{}}
	for _, svc := range services {
		for i, frontend := range svc.Frontends {
			key := frontendKey{frontend.Proto, frontend.Addr}
			if _, taken := s.frontends[key]; !taken && frontend.Addr.IsValid() {
				s.frontends[key] = &svc.Frontends[i]
			}
		}
	}
	for _, a := range own {
		s.own[a] = struct{}{}
	}
	return s
}

// tcpSynSent is the state of a connection that nobody has answered (linux,
// nf_conntrack_tcp.h).
const tcpSynSent = 1

// MatchConntrackFlow reports whether a connection is to be forgotten.
func (s stale) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	if f.Zone != 0 || !halfOpen(f) { // zones are the switch's
		return false
	}
	asked, answers := addrPort(f.Forward.DstIP, f.Forward.DstPort), addrPort(f.Reverse.SrcIP, f.Reverse.SrcPort)
	_, here := s.own[asked.Addr()]
	frontend := s.frontends[frontendKey{f.Forward.Protocol, asked}]
	if frontend == nil && here {
		frontend = s.frontends[frontendKey{f.Forward.Protocol, netip.AddrPortFrom(unspecified(asked.Addr()), asked.Port())}]
	}
	return frontend != nil && !slices.Contains(frontend.Keeps, answers)
}

// halfOpen reports whether a connection is one of datagrams, or has not been answered.
func halfOpen(f *netlink.ConntrackFlow) bool {
	tcp, ok := f.ProtoInfo.(*netlink.ProtoInfoTCP)
	return f.Forward.Protocol == unix.IPPROTO_UDP || f.Forward.Protocol == unix.IPPROTO_TCP && ok && tcp.State == tcpSynSent
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// forgetStale has the kernel forget what is stale.
func forgetStale(services []Service) error {
	var own []netip.Addr
	addrs, err := netlinksafe.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the addresses of the node: %w", err)
	}
	for _, a := range addrs {
		if a, ok := netip.AddrFromSlice(a.IP); ok {
			own = append(own, a.Unmap())
		}
	}
	filter := newStale(services, own)
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlinksafe.ConntrackDeleteFilters(netlink.ConntrackTable, family, filter); err != nil {
			return fmt.Errorf("forget connections to providers that are gone: %w", err)
		}
	}
	return nil
}
