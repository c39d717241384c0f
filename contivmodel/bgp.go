package contivmodel

import "strings"

// Bgp is the BGP speaker of one host.
type Bgp struct {
	Key        string `json:"key"`
	As         string `json:"as,omitempty"`
	Hostname   string `json:"hostname,omitempty"` // host label of the agent that runs the speaker
	Neighbor   string `json:"neighbor,omitempty"` // IPv4 address
	NeighborAs string `json:"neighbor-as,omitempty"`
	Routerip   string `json:"routerip,omitempty"` // ADDRESS[-OCTET]/LENGTH
}

// BgpOper is what a speaker reports of itself.
type BgpOper struct {
	AdminStatus    string   `json:"adminStatus,omitempty"`
	NeighborStatus string   `json:"neighborStatus,omitempty"`
	NumRoutes      int      `json:"numRoutes,omitempty"`
	Routes         []string `json:"routes,omitempty"`
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
