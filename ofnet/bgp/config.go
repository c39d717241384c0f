package bgp

import (
	"net/netip"

	"github.com/contiv/netplugin/utils/errs"
)

// Port is where BGP speakers listen (RFC 4271 section 4.2).
const Port = 179

// Config is the desired configuration of a speaker.
type Config struct {
	AS uint32 // of this host, from 1
	// Router is the IPv4 address of the host on the link to its neighbors, with the
	// link's prefix length. It is the BGP identifier, and the next hop of announced
	// addresses.
	Router netip.Prefix
	// Router6 is the same for IPv6. Without it no IPv6 addresses are announced.
	Router6   netip.Prefix
	Neighbors []Neighbor // at least one
	Port      uint16     // of both ends, for tests; 0 for Port
}

// Neighbor is a router that the host talks to.
type Neighbor struct {
	Addr netip.Addr // on the link of Router or Router6
	AS   uint32     // from 1; iBGP if it is the AS of the host
	// Password signs the segments of the session (RFC 2385), up to 80 bytes; "" for
	// none.
	Password string
	// TTLSecurity sends and accepts segments with a TTL of 255 only (RFC 5082), which
	// proves that the neighbor is on the link. Both ends must use it.
	TTLSecurity bool
}

const maxPassword = 80 // TCP_MD5SIG_MAXKEYLEN

// Validate rejects configurations that cannot work; the error is Invalid and names the
// value.
func (c Config) Validate() error {
	invalid := func(format string, args ...any) error { return errs.New(errs.Invalid, format, args...) }
	switch {
	case c.AS == 0:
		return invalid("AS 0: expected 1 to 4294967295")
	case !c.Router.IsValid() || !c.Router.Addr().Is4() || !isHost(c.Router):
		return invalid("router address %q: expected the IPv4 address of a host and a prefix length", text(c.Router))
	case c.Router6.IsValid() && (!c.Router6.Addr().Is6() || c.Router6.Addr().Is4In6() || !isHost(c.Router6)):
		return invalid("router address %q: expected the IPv6 address of a host and a prefix length", text(c.Router6))
	case len(c.Neighbors) == 0:
		return invalid("router %s has no neighbor: expected at least one", c.Router)
	}
	seen := map[netip.Addr]bool{}
	for _, n := range c.Neighbors {
		switch {
		case n.AS == 0:
			return invalid("neighbor %s: AS 0: expected 1 to 4294967295", n.Addr)
		case n.Addr == c.Router.Addr() || n.Addr == c.Router6.Addr():
			return invalid("neighbor %s is the router itself", n.Addr)
		case !c.onLink(n.Addr):
			return invalid("neighbor %s is not in the router's subnet %s: expected a router of the same link", n.Addr, c.linkOf(n.Addr))
		case seen[n.Addr]:
			return invalid("neighbor %s is named twice", n.Addr)
		case len(n.Password) > maxPassword:
			return invalid("neighbor %s: the password has %d bytes: expected at most %d", n.Addr, len(n.Password), maxPassword)
		}
		seen[n.Addr] = true
	}
	return nil
}

// onLink reports whether an address is on the link, that is reachable without a router.
func (c Config) onLink(a netip.Addr) bool {
	return a.Is6() && a.IsLinkLocalUnicast() || c.Router.Contains(a) || c.Router6.Contains(a)
}

func (c Config) linkOf(a netip.Addr) netip.Prefix {
	if a.Is6() {
		return c.Router6.Masked()
	}
	return c.Router.Masked()
}

// isHost reports whether an address with its prefix length is a host's: not the network
// address or the broadcast address.
func isHost(p netip.Prefix) bool {
	a := p.Addr()
	if a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || p.Bits() == 0 {
		return false
	}
	if a.Is6() || p.Bits() >= 31 { // RFC 3021
		return true
	}
	b := a.As4()
	host := (uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])) & (1<<(32-p.Bits()) - 1)
	return host != 0 && host != 1<<(32-p.Bits())-1
}

func text(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

// same reports whether two configurations are equal except for neighbors.
func (c *Config) same(o *Config) bool {
	return c.AS == o.AS && c.Router == o.Router && c.Router6 == o.Router6 && c.Port == o.Port
}
