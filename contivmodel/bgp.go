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

// BgpType names the kind in links, store keys and errors.
const BgpType = "Bgp"

// BgpKind describes BGP speakers; the key is the host's name.
func BgpKind() Kind[Bgp, BgpOper] {
	return Kind[Bgp, BgpOper]{
		Type: BgpType, Collection: "Bgps", names: []string{"hostname"},
		key:     func(b *Bgp) *string { return &b.Key },
		unlink:  func(*Bgp) {},
		members: bgpFields(),
	}
}

func bgpFields() []member[Bgp] {
	return []member[Bgp]{
		{
			Field: Field{Name: "as", Text: "the speaker's own autonomous system", MaxBytes: 64},
			text:  func(b *Bgp) *string { return &b.As },
		},
		name(member[Bgp]{
			Field: Field{Name: "hostname", Text: "host label of the agent"},
			text:  func(b *Bgp) *string { return &b.Hostname },
		}, 256),
		{
			Field: Field{Name: "neighbor", Text: "IPv4 address", MaxBytes: 15, Format: "ipv4"},
			text:  func(b *Bgp) *string { return &b.Neighbor }, valid: isIP4,
		},
		{
			Field: Field{Name: "neighbor-as", Text: "the neighbor's autonomous system", MaxBytes: 64},
			text:  func(b *Bgp) *string { return &b.NeighborAs },
		},
		{
			Field: Field{Name: "routerip", Text: "ADDRESS[-OCTET]/LENGTH, IPv4, length 1-31", Required: true},
			text:  func(b *Bgp) *string { return &b.Routerip }, valid: isRouterIP,
		},
		{
			Field: Field{Name: "routerip6", Text: "ADDRESS/LENGTH, IPv6, length 1-127; without it no IPv6 routes are advertised"},
			text:  func(b *Bgp) *string { return &b.Routerip6 }, valid: isRouterIP6,
		},
		{
			Field: Field{Name: "neighbors", Text: "further neighbors, each ADDRESS or ADDRESS@AS, IPv4 or IPv6"},
			list:  func(b *Bgp) *[]string { return &b.Neighbors }, valid: isNeighbor,
		},
		{
			Field: Field{Name: "password", Text: "signs the TCP segments of all sessions (RFC 2385)", MaxBytes: 80},
			text:  func(b *Bgp) *string { return &b.Password },
		},
		{
			Field: Field{
				Name: "ttl-security", Values: []string{"yes", "no"},
				Text: "sends and accepts session segments with a TTL of 255 only (RFC 5082); the neighbors must do the same",
			},
			text: func(b *Bgp) *string { return &b.TTLSecurity },
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

// HiddenPassword is shown in place of a password. An update with it keeps the password.
const HiddenPassword = "********"
