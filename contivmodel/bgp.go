package contivmodel

import (
	"net/netip"
	"strconv"
	"strings"
)

// Bgp is the BGP speaker of one host.
type Bgp struct {
	Key        string `json:"key"`
	As         string `json:"as,omitempty"`
	Hostname   string `json:"hostname,omitempty"` // host label of the agent that runs the speaker
	Neighbor   string `json:"neighbor,omitempty"` // IPv4 address
	NeighborAs string `json:"neighbor-as,omitempty"`
	Routerip   string `json:"routerip,omitempty"` // ADDRESS[-OCTET]/LENGTH

	Routerip6 string   `json:"routerip6,omitempty"` // ADDRESS/LENGTH; without it no IPv6 is announced
	Neighbors []string `json:"neighbors,omitempty"` // further ones: ADDRESS or ADDRESS@AS, of either family
	Password  string   `json:"password,omitempty"`  // signs the segments of all sessions (RFC 2385)

	TTLSecurity string `json:"ttl-security,omitempty"` // yes, no or empty; yes: sessions do not leave the link (RFC 5082)
}

// BgpOper is what a speaker reports of itself.
type BgpOper struct {
	AdminStatus    string   `json:"adminStatus,omitempty"`
	NeighborStatus string   `json:"neighborStatus,omitempty"`
	NumRoutes      int      `json:"numRoutes,omitempty"`
	Routes         []string `json:"routes,omitempty"`
	// Neighbors are all of them, the states above those of the first.
	Neighbors  []BgpNeighbor `json:"neighbors,omitempty"`
	Advertised []string      `json:"advertised,omitempty"` // prefixes neighbors have been told of
}

// BgpNeighbor is one session of a speaker.
type BgpNeighbor struct {
	Address     string `json:"address"`
	As          uint32 `json:"as"`
	Status      string `json:"status"`      // idle, connect, active, opensent, openconfirm or established
	AdminStatus string `json:"adminStatus"` // ADMIN_STATE_UP, …
	Received    int    `json:"received"`    // prefixes
	Advertised  int    `json:"advertised"`  // prefixes
}

// BgpKind describes BGP speakers; the key is the host's name.
func BgpKind() Kind[Bgp, BgpOper] {
	return Kind[Bgp, BgpOper]{
		Type:       "Bgp",
		Collection: "Bgps",
		key:        func(b *Bgp) *string { return &b.Key },
		ident:      func(b *Bgp) string { return b.Hostname },
		unlink:     func(*Bgp) {},
		check: func(b *Bgp, c *checker) {
			c.limit("as", b.As, 64)
			c.name("hostname", b.Hostname, 256)
			c.limit("neighbor", b.Neighbor, 15)
			if b.Neighbor != "" {
				_, ok := ParseIP4(b.Neighbor)
				c.format("neighbor", ok)
			}
			c.limit("neighbor-as", b.NeighborAs, 64)
			c.format("routerip", isRouterIP(b.Routerip))
			c.format("routerip6", b.Routerip6 == "" || isRouterIP6(b.Routerip6))
			for _, n := range b.Neighbors {
				c.format("neighbors", isNeighbor(n))
			}
			c.limit("password", b.Password, 80)
			c.oneOf("ttl-security", b.TTLSecurity, "", "yes", "no")
		},
	}
}

// isRouterIP accepts ADDRESS[-OCTET]/LENGTH with a length of 1–31.
func isRouterIP(s string) bool {
	host, length, ok := strings.Cut(s, "/")
	_, fine := prefixLen(length, 31)
	host, octet, isRange := strings.Cut(host, "-")
	_, good := ParseIP4(host)
	if isRange {
		_, last := ParseIP4("0.0.0." + octet)
		good = good && last
	}
	return ok && fine && good
}

// isRouterIP6 accepts the IPv6 address of a host with a prefix length of 1–127.
func isRouterIP6(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p.Addr().Is6() && !p.Addr().Is4In6() && p.Bits() >= 1 && p.Bits() <= 127
}

// isNeighbor accepts ADDRESS and ADDRESS@AS.
func isNeighbor(s string) bool {
	addr, as, hasAS := strings.Cut(s, "@")
	if hasAS {
		n, err := strconv.ParseUint(as, 10, 32)
		hasAS = err == nil && n > 0
	} else {
		hasAS = true
	}
	a, err := netip.ParseAddr(addr)
	return hasAS && err == nil && a.Zone() == ""
}
