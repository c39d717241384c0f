package netx

import (
	"net"
	"net/netip"
)

// HostOf is the address of a client, "host:port", without its port. What has none, as a unix
// socket, stays as it is.
func HostOf(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// SourceOf names where a client comes from by what one party has for itself: its IPv4 address,
// or the /64 of its IPv6 address.
func SourceOf(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	p, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return p.String()
}
