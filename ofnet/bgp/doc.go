// Package bgp is the BGP speaker of one host (RFC 4271): it announces the addresses of
// the host's containers to the routers of the physical network, and learns from them
// the routes to everything else, IPv4 and IPv6 alike (RFC 4760).
//
// A Speaker is given the desired state (a Config, the addresses to announce) and brings
// the sessions there by difference; what it learns is read with Routes. It knows
// nothing of switches: whoever uses it turns routes into flows.
//
//	s := bgp.New(bgp.Options{OnChange: kick})
//	go s.Run(ctx)
//	s.Configure(&bgp.Config{AS: 65002, Router: …, Neighbors: …})
//	s.Announce([]netip.Addr{…})
//	for _, r := range s.Routes() { … }
//
// When Run ends, the sessions end without a word, so that the neighbors keep the
// routes of this host and expect it back (graceful restart, RFC 4724). Settled tells
// when a new speaker has heard of all its neighbors what its predecessor knew.
//
// A host is no transit: what it learns from one neighbor it does not tell another.
package bgp
