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
	seats map[seatKey]*Frontend
	own   map[netip.Addr]struct{} // addresses of the node
}

type seatKey struct {
	proto uint8
	addr  netip.AddrPort // of a node port: unspecified
}

func newStale(services []Service, own []netip.Addr) stale {
	s := stale{seats: map[seatKey]*Frontend{}, own: map[netip.Addr]struct{}{}}
	for _, svc := range services {
		for i, seat := range svc.Frontends {
			key := seatKey{seat.Proto, seat.Addr}
			if _, taken := s.seats[key]; !taken && seat.Addr.IsValid() {
				s.seats[key] = &svc.Frontends[i]
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
	seat := s.seats[seatKey{f.Forward.Protocol, asked}]
	if seat == nil && here {
		seat = s.seats[seatKey{f.Forward.Protocol, netip.AddrPortFrom(unspecified(asked.Addr()), asked.Port())}]
	}
	return seat != nil && !slices.Contains(seat.Keeps, answers)
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
